/** Modules for tests. */
import type { ModuleSpec } from './spec.ts'

/** A module that was read: moduleNamed('slurm', ['munge']) requires munge in line 3. */
export function moduleNamed(name: string, requires: readonly string[] = [], origin = 'site'): ModuleSpec {
  return {
    name,
    dir: `/modules/${name}`,
    origin,
    file: origin === 'site' ? `modules/${name}/module.yaml` : `${origin}:${name}/module.yaml`,
    requires: requires.map((required, index) => ({ name: required, line: 3, column: 12 + index })),
    packages: {},
    network: false,
    env: {},
    digest: 'sha256:00',
  }
}

export const modulesOf = (...modules: readonly ModuleSpec[]): Map<string, ModuleSpec> =>
  new Map(modules.map(module => [module.name, module]))
