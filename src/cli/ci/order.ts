import { readRecipe, recipeNames } from '../../site/render-recipe.ts'
import type { Site } from '../../site/site.ts'

/** Name → those of the list that must have ended before it begins. */
export type Order = ReadonlyMap<string, readonly string[]>

/**
 * An image waits for the images it starts from. Where several share one that is not in the list, the first of them makes
 * it and the others wait for that one; and the scripts of a base of the site's own share a directory, so those go one by
 * one.
 */
export function buildOrder(site: Site, names: readonly string[]): Order {
  const known = new Set(recipeNames(site))
  const last = new Map<string, string>()
  const order = new Map<string, readonly string[]>(names.map(name => [name, []]))
  const listed = new Set(names)
  // Those that others start from come first, so that whoever makes what is shared never waits for one that waits for it.
  const byDepth = names.map(name => ({ name, bases: basesOf(site, name, known) }))
  for (const { name, bases } of byDepth.sort((a, b) => a.bases.images.length - b.bases.images.length)) {
    const waits = new Set(bases.images.filter(base => listed.has(base)))
    for (const base of bases.images.filter(one => !listed.has(one))) {
      const maker = last.get(base)
      if (maker === undefined) last.set(base, name)
      else waits.add(maker)
    }
    for (const own of bases.own) {
      const before = last.get(own)
      if (before !== undefined) waits.add(before)
      last.set(own, name)
    }
    order.set(name, [...waits])
  }
  return order
}

interface Bases {
  /** Images of the site it starts from, the nearest first. */
  readonly images: readonly string[]
  /** Bases of the site's own, told from images by their mark. */
  readonly own: readonly string[]
}

function basesOf(site: Site, name: string, known: ReadonlySet<string>): Bases {
  const images: string[] = []
  for (let next = name; ;) {
    const from = readRecipe(site, next).recipe?.from
    if (from?.kind === 'own') return { images, own: [`own:${from.name}`] }
    // A circle is a mistake of the site, which has been told before.
    if (from?.kind !== 'image' || !known.has(from.settings) || images.includes(from.settings))
      return { images, own: [] }
    images.push(from.settings)
    next = from.settings
  }
}
