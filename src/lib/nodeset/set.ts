/**
 * A set of node names, never changed once made.
 *
 *   const racks = NodeSet.of(['r1n1', 'r1n2', 'r2n1', 'r2n2'])
 *   String(racks)                                       → 'r[1-2]n[1-2]'
 *   String(racks.difference(NodeSet.of(['r2n2'])))      → 'r1n[1-2],r2n1'
 *   [...NodeSet.of(['n10', 'n9'])]                      → ['n9', 'n10']
 */
import { MusterError } from '../errors.ts'
import { Collector, type Patterns } from './collect.ts'
import { expand } from './expand.ts'
import { fold } from './fold.ts'
import { compareText, readName, whyNoName } from './name.ts'
import {
  combine,
  difference,
  equal,
  holds,
  intersection,
  isNothing,
  sizeOf,
  symmetricDifference,
  union,
  type Keep,
  type Tree,
} from './tree.ts'

export class NodeSet implements Iterable<string> {
  static readonly empty = new NodeSet(new Map())

  readonly patterns: Patterns
  #size: number | undefined

  /** Make sets with `NodeSet.of` or `parseNodeSet`; this is for those two. */
  constructor(patterns: Patterns) {
    this.patterns = patterns
  }

  /** Plain names, no notation. */
  static of(names: Iterable<string>): NodeSet {
    if (names instanceof NodeSet) return names
    const collector = new Collector()
    for (const name of names) {
      if (!collector.addName(name)) throw new MusterError('NODESET_INVALID', whyNoName(name))
    }
    return new NodeSet(collector.collect())
  }

  get size(): number {
    return (this.#size ??= this.patterns.values().reduce((size, tree) => size + sizeOf(tree), 0))
  }

  has(name: string): boolean {
    const codes: number[] = []
    const pattern = readName(name, codes)
    const tree = pattern === undefined ? undefined : this.patterns.get(pattern)
    return tree !== undefined && holds(tree, codes)
  }

  union(other: NodeSet): NodeSet {
    return this.#combine(other, union)
  }

  difference(other: NodeSet): NodeSet {
    return this.#combine(other, difference)
  }

  intersection(other: NodeSet): NodeSet {
    return this.#combine(other, intersection)
  }

  symmetricDifference(other: NodeSet): NodeSet {
    return this.#combine(other, symmetricDifference)
  }

  equals(other: NodeSet): boolean {
    if (this.patterns.size !== other.patterns.size) return false
    return this.patterns.entries().every(([pattern, tree]) => {
      const theirs = other.patterns.get(pattern)
      return theirs !== undefined && equal(tree, theirs)
    })
  }

  /** The names in the order of `compareNames`. */
  [Symbol.iterator](): IterableIterator<string> {
    const names: string[] = []
    for (const [pattern, tree] of this.#inOrder()) expand(pattern, tree, names)
    return names.values()
  }

  /** Folded: 'n[001-128],r[1-2]n[1-4]'. The same set always reads the same. */
  toString(): string {
    return this.#inOrder()
      .map(([pattern, tree]) => fold(pattern, tree))
      .join(',')
  }

  #inOrder(): [string, Tree][] {
    return [...this.patterns].sort(([a], [b]) => compareText(a, b))
  }

  #combine(other: NodeSet, keep: Keep): NodeSet {
    const patterns = new Map<string, Tree>()
    for (const [pattern, tree] of this.patterns) {
      const theirs = other.patterns.get(pattern)
      if (theirs) {
        const combined = combine(tree, theirs, keep)
        if (!isNothing(combined)) patterns.set(pattern, combined)
      } else if (keep.left) patterns.set(pattern, tree)
    }
    if (keep.right) {
      for (const [pattern, tree] of other.patterns) if (!this.patterns.has(pattern)) patterns.set(pattern, tree)
    }
    return new NodeSet(patterns)
  }
}
