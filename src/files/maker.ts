import { hash } from 'node:crypto'
import { type Content, FileRenderer, type OpenSecret, renderMemory } from '../site/render-files.ts'
import type { Site } from '../site/site.ts'
import type { SiteSource } from '../site/source.ts'
import { listText } from './list.ts'
import { type Dropped, Holdings } from './holdings.ts'
import type { PeerWords } from './peers.ts'
import { type Failure, type NodeRecord, SiteUpdate } from './site-update.ts'

/** What changed for some nodes. What it refers to is in it, or was in one before and has not been dropped since. */
export interface Batch {
  readonly contents: readonly Content[]
  readonly lists: readonly NewList[]
  readonly nodes: readonly NodeChange[]
}

export interface NewList {
  readonly digest: string
  readonly text: string
  /** Digests of what is in its files. */
  readonly contents: readonly string[]
}

export interface NodeChange {
  readonly node: string
  /** The digest of the list it has from now on; undefined for none. */
  readonly list: string | undefined
  readonly failures: readonly Failure[]
}

/** Nodes of one batch: who reads it is not to be held up by it. */
const BATCH = 100

/** Makes the lists of all nodes and, whenever the site changes, those that become different. */
export class ListMaker {
  readonly #openSecret: OpenSecret
  readonly #memory = renderMemory()
  readonly #nodes = new Map<string, NodeRecord>()
  readonly #holdings = new Holdings()
  readonly #peerWords: PeerWords = new WeakMap()
  /** The site that all nodes are as of; none while an update is under way, or after one that was given up. */
  #site: Site | undefined

  constructor(openSecret: OpenSecret) {
    this.#openSecret = openSecret
  }

  async *update(site: Site, source: SiteSource): AsyncGenerator<Batch, Dropped> {
    const renderer = new FileRenderer(site, source, this.#openSecret, this.#memory)
    const known = { nodes: this.#nodes, before: this.#site, peerWords: this.#peerWords }
    const update = new SiteUpdate(site, renderer, known)
    this.#site = undefined
    let batch = emptyBatch()
    const tell = (node: string, before: NodeRecord | undefined, after: NodeRecord | undefined): void => {
      const list = after === undefined || after.files.length === 0 ? undefined : this.#hold(after, update, batch)
      const failures = after?.failures ?? []
      if (list !== before?.list || failures.length > 0 || (before?.failures.length ?? 0) > 0)
        batch.nodes.push({ node, list, failures })
      if (before?.list !== undefined) this.#holdings.release(before.list)
      if (after === undefined) this.#nodes.delete(node)
      else this.#nodes.set(node, { ...after, list })
    }
    for (const node of site.nodes.values()) {
      const before = this.#nodes.get(node.name)
      const after = await update.recordOf(node, before)
      if (after !== before) tell(node.name, before, after)
      if (batch.nodes.length < BATCH) continue
      yield batch
      batch = emptyBatch()
    }
    for (const [name, before] of this.#nodes) if (!site.nodes.has(name)) tell(name, before, undefined)
    if (batch.nodes.length > 0) yield batch
    this.#site = site
    return this.#holdings.sweep()
  }

  #hold({ files }: NodeRecord, update: SiteUpdate, batch: MutableBatch): string {
    const text = listText(files)
    const digest = hash('sha256', text, 'hex')
    if (this.#holdings.holdAgain(digest)) return digest
    const contents = files.flatMap(file => (file.kind === 'file' ? [file.sha256] : []))
    for (const sha256 of this.#holdings.hold(digest, contents)) batch.contents.push(update.content(sha256))
    batch.lists.push({ digest, text, contents })
    return digest
  }
}

interface MutableBatch {
  readonly contents: Content[]
  readonly lists: NewList[]
  readonly nodes: NodeChange[]
}
const emptyBatch = (): MutableBatch => ({ contents: [], lists: [], nodes: [] })
