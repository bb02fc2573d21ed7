import { crc32 } from 'node:zlib'

/**
 * Cuts a row of files into groups such that a change of one file moves few cuts: among the places where a group may end,
 * the one before the path with the lowest checksum is taken. Two rows that differ somewhere agree on such a place soon
 * after, and from there on all their groups are the same.
 */
export interface CutLimits {
  /** Bytes a group should have at least; fewer only where the next item is too large for it, and at the end. */
  readonly min: number
  /** Bytes a group has at most; more only when a single item is larger. */
  readonly max: number
}

export function cutStably<Item extends { readonly path: string; readonly size: number }>(
  items: readonly Item[],
  { min, max }: CutLimits,
): Item[][] {
  const ranks = items.map(item => crc32(item.path))
  const groups: Item[][] = []
  for (let start = 0; start < items.length;) {
    let bytes = 0
    let lowest = Infinity
    let cut: number | undefined
    let end = start
    for (; end < items.length; end++) {
      const rank = ranks[end] ?? 0
      if (end > start && bytes >= min && rank <= lowest) {
        lowest = rank
        cut = end
      }
      bytes += items[end]?.size ?? 0
      if (end > start && bytes > max) break
    }
    if (end < items.length) end = cut ?? end
    groups.push(items.slice(start, end))
    start = end
  }
  return groups
}
