/**
 * All names of one pattern, as a tree with a level for each number in it. r[1-2]n[1-4],r5n1 is
 *
 *   1…2 ── 1…4 ── end
 *   5   ── 1   ── end          (codes of digits.ts, here equal to the numbers)
 *
 * The branches of a level are in order and apart; neighbours with the same rest are one branch. So a set has exactly one
 * tree, r[1-9999]n[1-9999] is as small as r1n1, and the algebra of sets is one walk along two lists of branches.
 */
import type { Span } from './digits.ts'

interface Branch extends Span {
  readonly rest: Tree
}
export type Tree = readonly Branch[]

/** The name is complete. A pattern without numbers, as 'login', is this tree alone. */
export const end: Tree = Object.freeze([])

/** No name at all. Told from `end` by identity: both have no branches. */
const nothing: Tree = Object.freeze([])

export const isNothing = (tree: Tree): boolean => tree.length === 0 && tree !== end

/** Which names an operation keeps: those only on the left, on both sides, only on the right. */
export interface Keep {
  readonly left: boolean
  readonly both: boolean
  readonly right: boolean
}
export const union: Keep = { left: true, both: true, right: true }
export const difference: Keep = { left: true, both: false, right: false }
export const intersection: Keep = { left: false, both: true, right: false }
export const symmetricDifference: Keep = { left: true, both: false, right: true }

/** Beyond every branch, for the side that has come to its end. */
const beyond: Branch = { first: Infinity, last: Infinity, rest: end }

/** Two trees of the same depth combined. */
export function combine(a: Tree, b: Tree, keep: Keep): Tree {
  if (a === b) return keep.both ? a : nothing
  const level = new Level()
  let i = 0
  let j = 0
  let from = 0
  while (i < a.length || j < b.length) {
    const x = a[i] ?? beyond
    const y = b[j] ?? beyond
    const first = Math.max(from, Math.min(x.first, y.first))
    const inX = x.first <= first
    const inY = y.first <= first
    const last = Math.min(inX ? x.last : x.first - 1, inY ? y.last : y.first - 1)
    if (inX && inY) level.add(first, last, combine(x.rest, y.rest, keep))
    else if (inX && keep.left) level.add(first, last, x.rest)
    else if (inY && keep.right) level.add(first, last, y.rest)
    if (x.last <= last) i++
    if (y.last <= last) j++
    from = last + 1
  }
  return level.branches
}

/** The union of many trees, in pairs and pairs of pairs, so that no tree is walked more often than log n times. */
export function unionOf(trees: readonly Tree[]): Tree {
  if (trees.length === 0) return nothing
  let round = trees
  while (round.length > 1) {
    const next: Tree[] = []
    for (let i = 0; i < round.length; i += 2) {
      const left = round[i] ?? nothing
      const right = round[i + 1]
      next.push(right ? combine(left, right, union) : left)
    }
    round = next
  }
  return round[0] ?? nothing
}

/** A tree of all combinations: [1…2] and [1…4] → r[1-2]n[1-4]. */
export const productOf = (levels: readonly (readonly Span[])[]): Tree =>
  levels.reduceRight<Tree>((rest, spans) => spans.map(({ first, last }) => ({ first, last, rest })), end)

/** The tree of single names; `codes` holds the `depth` codes of the first name, then those of the second, and so on. */
export function treeOfRows(codes: readonly number[], depth: number): Tree {
  const rows: number[] = []
  for (let row = 0; row < codes.length; row += depth) rows.push(row)
  return grow(codes, rows, 0, depth)
}

function grow(codes: readonly number[], rows: readonly number[], at: number, depth: number): Tree {
  const level = new Level()
  if (at === depth - 1) {
    const column = new Float64Array(rows.length)
    for (let i = 0; i < rows.length; i++) column[i] = cell(codes, cell(rows, i) + at)
    let before = -1
    for (const code of column.sort()) {
      if (code !== before) level.add(code, code, end)
      before = code
    }
    return level.branches
  }
  const groups = Map.groupBy(rows, row => cell(codes, row + at))
  for (const [code, group] of [...groups].sort(([a], [b]) => a - b)) {
    level.add(code, code, grow(codes, group, at + 1, depth))
  }
  return level.branches
}

/** An index that is known to be inside. */
const cell = (list: readonly number[], index: number): number => list[index] ?? NaN

/** The branches of one level, added in order. */
class Level {
  readonly branches: { first: number; last: number; rest: Tree }[] = []

  add(first: number, last: number, rest: Tree): void {
    if (isNothing(rest)) return
    const before = this.branches.at(-1)
    if (before && before.last + 1 === first && equal(before.rest, rest)) before.last = last
    else this.branches.push({ first, last, rest })
  }
}

export function equal(a: Tree, b: Tree): boolean {
  if (a === b) return true
  if (a.length !== b.length || a === end || b === end) return false
  return a.every((x, i) => {
    const y = b[i] ?? beyond
    return x.first === y.first && x.last === y.last && equal(x.rest, y.rest)
  })
}

export function sizeOf(tree: Tree): number {
  if (tree === end) return 1
  let size = 0
  for (const { first, last, rest } of tree) size += (last - first + 1) * sizeOf(rest)
  return size
}

export function holds(tree: Tree, codes: readonly number[]): boolean {
  let level = tree
  for (const code of codes) {
    const branch = find(level, code)
    if (!branch) return false
    level = branch.rest
  }
  return true
}

function find(level: Tree, code: number): Branch | undefined {
  let low = 0
  let high = level.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((level[middle] ?? beyond).last < code) low = middle + 1
    else high = middle
  }
  const branch = level[low]
  return branch && branch.first <= code ? branch : undefined
}
