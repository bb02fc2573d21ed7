import { MusterError } from '../../lib/errors.ts'
import { compareNames } from '../../lib/tree/entry.ts'
import { type ModuleSpec, SITE } from './spec.ts'

/**
 * All modules there are, from the site and its sources. The site may have its own of any name; but which of two sources
 * is meant, nobody can know.
 */
export function combineModules(sources: readonly ReadonlyMap<string, ModuleSpec>[]): Map<string, ModuleSpec> {
  const byName = Map.groupBy(
    sources.flatMap(source => [...source.values()]),
    ({ name }) => name,
  )
  const combined = new Map<string, ModuleSpec>()
  const clashes: string[] = []
  for (const [name, modules] of [...byName].sort(([a], [b]) => compareNames(a, b))) {
    const [only, other] = modules
    const chosen = modules.find(({ origin }) => origin === SITE) ?? (other === undefined ? only : undefined)
    if (chosen !== undefined) combined.set(name, chosen)
    else clashes.push(`${name} is in several sources: ${modules.map(({ file }) => file).join(', ')}`)
  }
  if (clashes.length === 0) return combined
  const [only = ''] = clashes
  throw new MusterError('MODULE_INVALID', clashes.length === 1 ? only : 'modules are in several sources', {
    hint: 'let the site have a module of this name itself, or take one of the sources away',
    details: clashes.length === 1 ? [] : clashes,
  })
}
