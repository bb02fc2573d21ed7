import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { NodeFiles } from '../boot/node-files.ts'
import { messageOf } from '../lib/errors.ts'
import { fold } from '../lib/nodeset/index.ts'
import type { Repository } from '../site/git.ts'
import type { NewEvent, Store } from '../state/store.ts'
import { EarlierLists } from './earlier-lists.ts'
import type { NodeChange } from './maker.ts'
import type { Failure } from './site-update.ts'
import type { WorkerInput } from './worker.ts'
import { type Answer, type Order, type WireBatch, unpack } from './wire.ts'

export interface FileBookOptions {
  readonly store: Store
  readonly logger: Logger
  readonly repo: Repository
  /** The tree of the site in force; undefined before the first was applied, or if no node gets any file. */
  readonly tree: () => Promise<string | undefined>
  /** With which secrets are opened. */
  readonly identities: readonly string[]
}

/** Kinds of events after which another site may be in force. */
const MATTERS = /^(site\.applied|state\.restored)$/
const AGAIN = 5000
/** Of one change; nobody reads more. */
const MOST_EVENTS = 50

interface HeldList {
  readonly version: string
  readonly text: Buffer
  readonly contents: readonly HeldContent[]
}
interface HeldContent {
  readonly sha256: string
  readonly bytes: Buffer
  readonly isSecret: boolean
}

/** What a node is to have, and what of it could not be made. */
export interface NodeFilesState {
  readonly list: HeldList | undefined
  readonly failures: readonly Failure[]
}

/**
 * The lists of files of all nodes, and what is in those files: in memory and nowhere else, since secrets are among them. A worker
 * makes them (worker.ts) whenever another site is in force; a node has its old list until its new one is whole.
 */
export class FileBook implements NodeFiles, AsyncDisposable {
  readonly #options: FileBookOptions
  readonly #stop = new AbortController()
  readonly #nodes = new Map<string, HeldList>()
  readonly #failures = new Map<string, readonly Failure[]>()
  /** What the worker may refer to. */
  readonly #lists = new Map<string, HeldList>()
  readonly #contents = new Map<string, HeldContent>()
  readonly #earlier = new EarlierLists()
  #worker: Worker | undefined
  /** What is in force here. */
  #tree: string | undefined
  #updating: Promise<void> = Promise.resolve()
  #following: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  private constructor(options: FileBookOptions) {
    this.#options = options
  }

  /** Resolves when the files of the site in force are there, or cannot be made. */
  static async start(options: FileBookOptions): Promise<FileBook> {
    const book = new FileBook(options)
    const revision = await options.store.revision()
    await book.refresh()
    book.#following = book.#follow(revision)
    return book
  }

  list(node: string): { readonly version: string; readonly text: Buffer } | undefined {
    return this.#nodes.get(node)
  }

  content(node: string, sha256: string): Buffer | undefined {
    return this.#nodes.get(node)?.contents.find(content => content.sha256 === sha256)?.bytes
  }

  readonly about = (node: string): NodeFilesState => ({
    list: this.#nodes.get(node),
    failures: this.#failures.get(node) ?? [],
  })

  /** The text of a list that a node has, or had not long ago. */
  readonly earlier = (version: string): string | undefined => {
    const current = this.#lists.values().find(list => list.version === version)
    return current?.text.toString() ?? this.#earlier.get(version)
  }

  /** Resolves when what was in force when it was called has been made; never fails. */
  refresh(): Promise<void> {
    this.#updating = this.#updating
      .then(() => this.#update())
      .catch((error: unknown) => {
        if (this.#stop.signal.aborted) return
        this.#options.logger.error({ reason: messageOf(error) }, 'files of nodes stay as they are')
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined
          void this.refresh()
        }, AGAIN).unref()
      })
    return this.#updating
  }

  async #follow(after: number): Promise<void> {
    for await (const events of this.#options.store.watch(after, this.#stop.signal))
      if (events.some(event => MATTERS.test(event.kind))) void this.refresh()
  }

  async #update(): Promise<void> {
    const tree = await this.#options.tree()
    if (this.#stop.signal.aborted || tree === this.#tree) return
    if (tree === undefined) await this.#forget()
    else {
      const before = new Map(this.#failures)
      await this.#make(tree)
      await this.#tellOf(before)
    }
    this.#tree = tree
  }

  async #forget(): Promise<void> {
    await this.#end()
    this.#nodes.clear()
    this.#failures.clear()
  }

  /** Everything it answers is taken before it resolves. */
  #make(tree: string): Promise<void> {
    const worker = (this.#worker ??= this.#begin())
    worker.ref()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const taken = (answer: Answer): void => {
      if (answer.kind === 'batch') {
        this.#take(answer.batch)
        worker.postMessage('taken', [])
        return
      }
      done()
      if (answer.kind === 'failed') return reject(new Error(answer.reason))
      for (const list of answer.lists) this.#drop(list)
      for (const content of answer.contents) this.#contents.delete(content)
      resolve()
    }
    const broken = (error: unknown): void => {
      done()
      void this.#end()
      reject(error instanceof Error ? error : new Error('the worker ended'))
    }
    const done = (): void => {
      worker.off('message', taken).off('error', broken).off('exit', broken)
      // A server that stops does not wait for it.
      worker.unref()
    }
    worker.on('message', taken).on('error', broken).on('exit', broken)
    worker.postMessage({ tree } satisfies Order, [])
    return promise
  }

  #begin(): Worker {
    const { repo, identities } = this.#options
    return new Worker(new URL('worker.ts', import.meta.url), {
      workerData: { repo, identities } satisfies WorkerInput,
    })
  }

  /** Nodes keep what they have; what a new worker says starts from nothing. */
  async #end(): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    this.#lists.clear()
    this.#contents.clear()
    await worker?.terminate()
  }

  #drop(digest: string): void {
    const list = this.#lists.get(digest)
    if (list === undefined) return
    this.#lists.delete(digest)
    this.#earlier.add(list.version, list.text)
  }

  #take(batch: WireBatch): void {
    for (const { sha256, isSecret, ...piece } of batch.contents)
      this.#contents.set(sha256, { sha256, isSecret, bytes: unpack(batch, piece) })
    for (const { digest, contents, ...piece } of batch.lists) {
      const held = contents.map(sha256 => known(this.#contents, sha256))
      this.#lists.set(digest, { version: digest.slice(0, 16), text: unpack(batch, piece), contents: held })
    }
    for (const change of batch.nodes) this.#change(change)
  }

  #change({ node, list, failures }: NodeChange): void {
    if (list === undefined) this.#nodes.delete(node)
    else this.#nodes.set(node, known(this.#lists, list))
    if (failures.length === 0) this.#failures.delete(node)
    else this.#failures.set(node, failures)
  }

  /** One event for each file that could not be made, for all nodes that have not been named for the same reason before. */
  async #tellOf(before: ReadonlyMap<string, readonly Failure[]>): Promise<void> {
    const files = new Map<string, { readonly failure: Failure; readonly nodes: string[] }>()
    for (const [node, failures] of this.#failures)
      for (const failure of failures) {
        const { path, source, reason } = failure
        if (before.get(node)?.some(old => old.path === path && old.reason === reason) === true) continue
        const key = `${path}\0${source}`
        const file = files.get(key)
        if (file === undefined) files.set(key, { failure, nodes: [node] })
        else file.nodes.push(node)
      }
    const events = [...files.values()].slice(0, MOST_EVENTS).map(({ failure, nodes }): NewEvent => {
      const { path, source, reason, isKept } = failure
      return { kind: 'files.failed', nodes: fold(nodes), actor: 'muster', data: { path, source, reason, kept: isKept } }
    })
    const [first, ...more] = events
    if (first !== undefined) await this.#options.store.commit([], [first, ...more])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#end()
    await this.#updating
    await this.#following
  }
}

function known<Item>(items: ReadonlyMap<string, Item>, key: string): Item {
  const item = items.get(key)
  if (item === undefined) throw new Error(`${key} was not told before`)
  return item
}
