import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exists } from '../../lib/dirs.ts'
import { compareNames } from '../../lib/tree/entry.ts'
import type { Site } from '../../site/site.ts'
import { plainOf, treeAt } from '../../site/validate.ts'
import { combineModules } from './combine.ts'
import { readModules } from './read.ts'
import { type ModuleSource, fetchModuleSource, fetchedModuleSource } from './source.ts'
import type { ModuleSpec } from './spec.ts'

/** Modules that come with Muster. */
const BUILT_IN = fileURLToPath(new URL('../../../node/modules', import.meta.url))

/** The modules a site has: its own, and those of the repositories site.yaml pins. Read when first asked for. */
export function siteModules(
  site: Site,
  siteDir: string,
  cacheDir: string,
): () => Promise<ReadonlyMap<string, ModuleSpec>> {
  let found: Promise<ReadonlyMap<string, ModuleSpec>> | undefined
  return () => (found ??= collect(site, siteDir, cacheDir))
}

async function collect(site: Site, siteDir: string, cacheDir: string): Promise<ReadonlyMap<string, ModuleSpec>> {
  const own = await readModules(join(siteDir, 'modules'))
  const others = [await readModules(BUILT_IN, 'muster')]
  for (const source of moduleSources(site))
    others.push(await readModules(await fetchModuleSource(source, join(cacheDir, 'modules')), source.name))
  return combineModules([own, ...others])
}

/** The names of all modules that are on this machine, for somebody who is typing: nothing is fetched, nothing is checked. */
export async function moduleNames(site: Site | undefined, siteDir: string, cacheDir: string): Promise<string[]> {
  const sources = site === undefined ? [] : moduleSources(site)
  const fetched = sources.map(source => fetchedModuleSource(source, join(cacheDir, 'modules')).catch(() => undefined))
  const dirs = [join(siteDir, 'modules'), BUILT_IN, ...(await Promise.all(fetched)).filter(dir => dir !== undefined)]
  const names = await Promise.all(dirs.map(dir => namesIn(dir)))
  return [...new Set(names.flat())].sort(compareNames)
}

async function namesIn(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch(() => [])
  const isModule = await Promise.all(names.map(name => exists(join(dir, name, 'module.yaml'))))
  return names.filter((_, at) => isModule[at])
}

function moduleSources(site: Site): ModuleSource[] {
  const tree = treeAt(site.files.files.find(file => file.kind === 'site')?.tree, ['modules'])
  const sources = tree === undefined ? {} : (plainOf(tree) as Record<string, Omit<ModuleSource, 'name'>>)
  return Object.entries(sources).map(([name, source]) => ({ name, ...source }))
}
