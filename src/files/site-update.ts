import type { FilePlan, PlannedContent, PlannedFile } from '../site/file-plan.ts'
import type { SiteNode } from '../site/members.ts'
import type { Plain } from '../site/paths.ts'
import { type Content, type FileRenderer, commonOf } from '../site/render-files.ts'
import type { Site } from '../site/site.ts'
import type { ContentId } from './list.ts'
import { PeerChanges, type PeerWords } from './peers.ts'

/** What is known of the files of a node. The contents themselves are with those who give them out. */
export interface NodeRecord {
  /** What they were made of: the values of the node, and the plan. */
  readonly own: Plain
  readonly plan: FilePlan
  readonly files: readonly RecordedFile[]
  readonly failures: readonly Failure[]
  readonly list: string | undefined
}

type RecordedFile =
  | Exclude<PlannedFile, PlannedContent>
  | (PlannedContent & ContentId & { readonly planned: PlannedContent })

export interface Failure {
  readonly path: string
  readonly source: string
  readonly reason: string
  /** The last good one stays; false if there never was one. */
  readonly isKept: boolean
}

/** Where it starts from. */
interface Known {
  readonly nodes: ReadonlyMap<string, NodeRecord>
  /** The version of the site that all nodes are as of, if there is one. */
  readonly before: Site | undefined
  readonly peerWords: PeerWords
}

/**
 * The way of all nodes from one version of the site to the next. A file is rendered again when its source is another, when the
 * values of the node are, or when it speaks of other nodes and they are: with twenty thousand nodes nearly nothing is.
 */
export class SiteUpdate {
  readonly #site: Site
  readonly #renderer: FileRenderer
  /** Whether a node with the same values and the same plan has the same files: not if networks changed, for one. */
  readonly #isSame: boolean
  readonly #peers: PeerChanges
  readonly #contents = new Map<string, Content>()
  readonly #listed = new Map<PlannedContent, Map<string, RecordedFile>>()
  /** Of each plan, whether anything in it speaks of other nodes that changed. */
  readonly #stale = new Map<FilePlan, boolean>()

  constructor(site: Site, renderer: FileRenderer, { nodes, before, peerWords }: Known) {
    this.#site = site
    this.#renderer = renderer
    this.#isSame = before !== undefined && surroundings(before) === surroundings(site)
    this.#peers = new PeerChanges(site, nodes, peerWords)
  }

  /** The same record if nothing changed. */
  async recordOf(node: SiteNode, before: NodeRecord | undefined): Promise<NodeRecord> {
    const { own } = this.#site.resolve(node)
    const plan = this.#site.filesOf(node)
    const isSame = this.#isSame && before !== undefined && sameValues(before.own, own)
    if (isSame && before.plan === plan && before.failures.length === 0 && !this.#isStale(plan)) return before
    const old = walkerOf(before?.files ?? [])
    let facts: Plain | undefined
    const files: RecordedFile[] = []
    const failures: Failure[] = []
    for (const entry of plan.entries) {
      if (entry.kind !== 'file') {
        files.push(entry)
        continue
      }
      const kept = old(entry.path)
      if (isSame && kept?.kind === 'file' && kept.planned === entry && !this.#peers.matterTo(entry)) {
        files.push(kept)
        continue
      }
      const rendering = this.#renderer.renderOne(entry, (facts ??= this.#renderer.factsOf(node)))
      const rendered = rendering instanceof Promise ? await rendering : rendering
      if ('content' in rendered) files.push(this.#listedOf(entry, rendered))
      else {
        const { path, source } = entry
        failures.push({ path, source, reason: rendered.problem, isKept: kept !== undefined })
        if (kept !== undefined) files.push(kept)
      }
    }
    return { own, plan, files, failures, list: undefined }
  }

  /** One that was rendered in this update. */
  content(sha256: string): Content {
    const content = this.#contents.get(sha256)
    if (content === undefined) throw new Error(`${sha256} was not rendered`)
    return content
  }

  #listedOf(entry: PlannedContent, content: Content): RecordedFile {
    const { sha256 } = content
    this.#contents.set(sha256, content)
    let byContent = this.#listed.get(entry)
    if (byContent === undefined) {
      this.#listed.set(entry, (byContent = new Map()))
      this.#peers.learn(entry, this.#renderer.peerWords(entry))
    }
    let listed = byContent.get(sha256)
    if (listed === undefined)
      byContent.set(sha256, (listed = { ...entry, planned: entry, sha256, size: content.content.length }))
    return listed
  }

  #isStale(plan: FilePlan): boolean {
    let isStale = this.#stale.get(plan)
    if (isStale === undefined) {
      isStale = plan.entries.some(entry => entry.kind === 'file' && this.#peers.matterTo(entry))
      this.#stale.set(plan, isStale)
    }
    return isStale
  }
}

/** Finds files of a list by path, asked for in the order of the list. */
function walkerOf(files: readonly RecordedFile[]): (path: string) => RecordedFile | undefined {
  let at = 0
  return path => {
    while ((files[at]?.path ?? path) < path) at++
    return files[at]?.path === path ? files[at] : undefined
  }
}

/** A layer that was written anew, with a comment or another file in it, is no other value. */
const sameValues = (before: Plain, after: Plain): boolean =>
  before === after ||
  [...new Set([...Object.keys(before), ...Object.keys(after)])].every(
    key => key === 'files' || before[key] === after[key] || JSON.stringify(before[key]) === JSON.stringify(after[key]),
  )

/** What templates see besides the values of a node and of others, and how they name those. */
const surroundings = (site: Site): string =>
  JSON.stringify([site.name, commonOf(site), [...site.groups.keys()], [...site.clusters.keys()]])
