import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import type { Recipe } from '../../site/recipe.ts'
import { type AptSource, DEBIAN_KEYRING, hostSources } from './apt.ts'
import { digestOf } from './inputs.ts'
import type { LockedSet } from './lock.ts'

export type DebianSettings = Extract<Recipe['from'], { kind: 'debian' }>['settings']

/** What every Debian has, and apt, so that packages can be added. */
export const DEBIAN_ESSENTIALS = ['?or(?essential,?priority(required))', 'apt']

export const debianKey = (settings: DebianSettings, recipeDir: string): string =>
  settings.keyring === undefined ? DEBIAN_KEYRING : join(recipeDir, settings.keyring)

/** What decides which packages a release begins with. Not the mirrors: they may change, and the versions stay. */
export async function debianRequest(settings: DebianSettings, arch: string, key: string): Promise<string> {
  const { suite, components, keyring } = settings
  return digestOf({
    debian: suite,
    components,
    arch,
    keyring: keyring === undefined ? undefined : await readFile(key, 'base64'),
  })
}

/** Where they come from: the mirrors of the recipe, or those of this machine. */
export async function debianSources(settings: DebianSettings, key: string, image: string): Promise<AptSource[]> {
  const { suite, mirrors, components } = settings
  if (mirrors !== undefined) return [{ name: suite, urls: mirrors, suite, components, key }]
  const sources = await hostSources(suite, components)
  if (sources.length === 0)
    throw new MusterError(
      'RECIPE_INVALID',
      `images/${image}/image.yaml: from: this machine's apt has no mirror for ${suite}`,
      { hint: 'name one: from: { debian: { suite: …, mirrors: [http://…] } }' },
    )
  return sources.map(source => ({ ...source, key }))
}

/** The sources a lock was made with; where the recipe names mirrors, those count. */
export const lockedSources = (set: LockedSet, settings: DebianSettings, key: string): AptSource[] =>
  Object.entries(set.repositories).map(([name, repository]) => ({
    name,
    urls: settings.mirrors ?? repository.urls,
    suite: repository.suite ?? settings.suite,
    components: repository.components ?? [],
    key,
  }))
