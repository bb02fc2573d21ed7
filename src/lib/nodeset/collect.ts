/**
 * Gathers names and trees, in any order and with repeats, and makes the trees of their union once at the end:
 * a hundred thousand names cost one sort, not a hundred thousand unions.
 */
import { hole, readName } from './name.ts'
import { combine, end, sizeOf, treeOfRows, union, unionOf, type Tree } from './tree.ts'

/** Each pattern in the set with its tree, in no particular order; see name.ts and tree.ts. */
export type Patterns = ReadonlyMap<string, Tree>

interface Gathered {
  readonly codes: number[]
  readonly trees: Tree[]
}

export class Collector {
  readonly #gathered = new Map<string, Gathered>()
  readonly #codes: number[] = []
  #count = 0

  /** How many names were added; those added twice count twice. */
  get count(): number {
    return this.#count
  }

  /** False if this cannot be the name of a node; `whyNoName` says why. */
  addName(name: string): boolean {
    const codes = this.#codes
    codes.length = 0
    const pattern = readName(name, codes)
    if (pattern === undefined) return false
    const gathered = this.#at(pattern)
    if (codes.length === 0) gathered.trees[0] = end
    else for (const code of codes) gathered.codes.push(code)
    this.#count++
    return true
  }

  addTree(pattern: string, tree: Tree): void {
    const { trees } = this.#at(pattern)
    if (tree === end) trees[0] = end
    else trees.push(tree)
    this.#count += sizeOf(tree)
  }

  addAll(patterns: Patterns): void {
    for (const [pattern, tree] of patterns) this.addTree(pattern, tree)
  }

  /** The union of all that was added. More can be added to it afterwards. */
  collect(): Patterns {
    const patterns = new Map<string, Tree>()
    this.#count = 0
    for (const [pattern, { codes, trees }] of this.#gathered) {
      const depth = pattern.split(hole).length - 1
      const single = treeOfRows(codes, depth)
      const tree = codes.length === 0 ? unionOf(trees) : combine(unionOf(trees), single, union)
      patterns.set(pattern, tree)
      codes.length = 0
      trees.splice(0, trees.length, tree)
      this.#count += sizeOf(tree)
    }
    return patterns
  }

  #at(pattern: string): Gathered {
    let gathered = this.#gathered.get(pattern)
    if (!gathered) this.#gathered.set(pattern, (gathered = { codes: [], trees: [] }))
    return gathered
  }
}
