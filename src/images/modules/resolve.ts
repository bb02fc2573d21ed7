import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import type { ModuleSpec, Requirement } from './spec.ts'

/**
 * The modules to run, each once: what a module requires comes before it, else they keep the order they are wanted in.
 * resolveModules(['slurm', 'motd'], …) → munge, slurm, motd
 */
export function resolveModules(wanted: readonly string[], available: ReadonlyMap<string, ModuleSpec>): ModuleSpec[] {
  const missing = missingModules(wanted, available)
  if (missing.size > 0) throw unknownModules(missing, available)
  const ordered = new Set<ModuleSpec>()
  const visit = (module: ModuleSpec, path: readonly ModuleSpec[]): void => {
    if (ordered.has(module)) return
    const start = path.indexOf(module)
    if (start >= 0) throw circle([...path.slice(start), module])
    for (const { name } of module.requires) {
      const required = available.get(name)
      if (required !== undefined) visit(required, [...path, module])
    }
    ordered.add(module)
  }
  for (const name of wanted) {
    const module = available.get(name)
    if (module !== undefined) visit(module, [])
  }
  return [...ordered]
}

interface Wish {
  readonly by: ModuleSpec
  readonly requirement: Requirement
}

/** Name → who requires it; nobody when it was asked for itself. */
function missingModules(
  wanted: readonly string[],
  available: ReadonlyMap<string, ModuleSpec>,
): ReadonlyMap<string, readonly Wish[]> {
  const missing = new Map<string, Wish[]>(wanted.filter(name => !available.has(name)).map(name => [name, []]))
  const seen = new Set<ModuleSpec>()
  const open = wanted.flatMap(name => available.get(name) ?? [])
  for (let module = open.shift(); module !== undefined; module = open.shift()) {
    if (seen.has(module)) continue
    seen.add(module)
    for (const requirement of module.requires) {
      const required = available.get(requirement.name)
      if (required !== undefined) open.push(required)
      else missing.set(requirement.name, [...(missing.get(requirement.name) ?? []), { by: module, requirement }])
    }
  }
  return missing
}

function unknownModules(
  missing: ReadonlyMap<string, readonly Wish[]>,
  available: ReadonlyMap<string, ModuleSpec>,
): MusterError {
  const lines = [...missing].map(([name, wishes]) => {
    const who = wishes.map(({ by, requirement }) => `${by.name} (${placeOf(by, requirement)})`).join(' and ')
    const required = who === '' ? '' : `, required by ${who},`
    return `${name}${required} is in no modules directory${didYouMean(name, available.keys())}`
  })
  const [only = ''] = lines
  return lines.length === 1
    ? new MusterError('MODULE_UNKNOWN', only)
    : new MusterError('MODULE_UNKNOWN', `${lines.length} modules are in no modules directory`, { details: lines })
}

/** a → b → a, and the line of each arrow. */
function circle(modules: readonly ModuleSpec[]): MusterError {
  const details = modules.slice(0, -1).flatMap((module, index) => {
    const next = modules[index + 1]
    const requirement = module.requires.find(({ name }) => name === next?.name)
    return requirement === undefined
      ? []
      : [`${placeOf(module, requirement)}: ${module.name} requires ${requirement.name}`]
  })
  return new MusterError('MODULE_CYCLE', modules.map(({ name }) => name).join(' → '), { details })
}

const placeOf = (module: ModuleSpec, { line, column }: Requirement): string => `${module.file}:${line}:${column}`
