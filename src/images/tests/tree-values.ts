import type { Tree } from '../../lib/yaml/tree.ts'

/** Values of YAML of a certain kind; what is of another is said, and becomes nothing. */
type Say = (message: string) => void

/** A number is text too, and so is true: ports, versions and commands are written without quotes. */
export function textOf(tree: Tree, say: Say): string | undefined {
  const value = tree.kind === 'scalar' && tree.tag === undefined ? tree.value : undefined
  if (typeof value === 'string' ? !value.includes('\0') : typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  say('must be text')
  return undefined
}

export function textsOf(tree: Tree, say: Say): string[] | undefined {
  if (tree.kind === 'list') return tree.items.flatMap(item => textOf(item, say) ?? [])
  say('must be a list')
  return undefined
}

export function flagOf(tree: Tree, say: Say): boolean | undefined {
  if (tree.kind === 'scalar' && typeof tree.value === 'boolean') return tree.value
  say('must be true or false')
  return undefined
}

export function numberOf(tree: Tree, say: Say, least: number, most: number, whole = true): number | undefined {
  const value = tree.kind === 'scalar' ? tree.value : undefined
  const fits = typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value))
  if (fits) return value
  say(`must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}`)
  return undefined
}

const DAY = 86_400_000

/** A time-out; nobody waits for longer than a day. */
export const millisecondsOf = (tree: Tree, say: Say): number | undefined => numberOf(tree, say, 1, DAY)

export function plainOf(tree: Tree): unknown {
  if (tree.kind === 'scalar') return tree.value
  if (tree.kind === 'list') return tree.items.map(plainOf)
  return Object.fromEntries([...tree.entries].map(([key, entry]) => [key, plainOf(entry.value)]))
}
