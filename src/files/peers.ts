import type { PlannedContent } from '../site/file-plan.ts'
import type { Plain } from '../site/paths.ts'
import type { Site } from '../site/site.ts'

/** Of templates that look at other nodes: the words with which they may name values of those. */
export type PeerWords = WeakMap<PlannedContent, ReadonlySet<string>>

/**
 * Whether a template says something else because other nodes changed. /etc/hosts with a line for each of twenty thousand nodes
 * takes a while, and a change of what they boot is no reason to make it anew.
 */
export class PeerChanges {
  readonly #words: PeerWords
  readonly #isAnother: boolean
  readonly #changed: (readonly [before: Plain, after: Plain])[] = []
  readonly #matters = new Map<ReadonlySet<string>, boolean>()

  constructor(site: Site, known: ReadonlyMap<string, { readonly own: Plain }>, words: PeerWords) {
    this.#words = words
    let there = 0
    for (const node of site.nodes.values()) {
      const before = known.get(node.name)
      if (before === undefined) continue
      there++
      const { own } = site.resolve(node)
      if (before.own !== own) this.#changed.push([before.own, own])
    }
    this.#isAnother = there < site.nodes.size || there < known.size
  }

  matterTo(entry: PlannedContent): boolean {
    const words = this.#words.get(entry)
    if (words === undefined) return false
    let matters = this.#matters.get(words)
    if (matters === undefined) {
      matters = this.#isAnother || this.#changed.some(([before, after]) => named(before, words) !== named(after, words))
      this.#matters.set(words, matters)
    }
    return matters
  }

  learn(entry: PlannedContent, words: ReadonlySet<string> | undefined): void {
    if (words !== undefined) this.#words.set(entry, words)
  }
}

/** Who belongs to which set of nodes always counts. */
const named = (own: Plain, words: ReadonlySet<string>): string =>
  JSON.stringify(Object.entries(own).filter(([key]) => words.has(key) || key === 'cluster' || key === 'groups'))
