import { MusterError } from '../../lib/errors.ts'
import type { Place } from '../../lib/yaml/tree.ts'
import { type Problem, formatProblem, tidyProblems } from '../../site/problems.ts'
import type { Digest } from '../manifest.ts'

/** A small shell module: a folder with a module.yaml and an install.sh, to be run in the root of an image. */
export interface ModuleSpec {
  readonly name: string
  /** Its folder, as an absolute path. */
  readonly dir: string
  /** `site`, or the name of the source it comes from. */
  readonly origin: string
  /** Its module.yaml as people are told of it: modules/slurm/module.yaml, or common:slurm/module.yaml. */
  readonly file: string
  readonly about?: string
  readonly requires: readonly Requirement[]
  readonly packages: Readonly<Partial<Record<ModuleFamily, readonly string[]>>>
  readonly network: boolean
  readonly env: Readonly<Record<string, string>>
  /** Of path, executable bit and content of every file in its folder: when it changes, images are built anew. */
  readonly digest: Digest
}

export type ModuleFamily = 'debian' | 'redhat' | 'suse' | 'alpine' | 'all'

/** The name of another module, and where it stands in module.yaml. */
export interface Requirement extends Place {
  readonly name: string
}

export const SITE = 'site'

export function modulesInvalid(problems: readonly Problem[]): MusterError {
  const details = tidyProblems(problems).map(formatProblem)
  const count = details.length === 1 ? '1 error' : `${details.length} errors`
  return new MusterError('MODULE_INVALID', `the modules have ${count}`, { details })
}
