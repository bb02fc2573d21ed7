import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { CHANNEL, type Move, channelsIn } from '../images/moves.ts'
import type { Digest, Manifest } from '../images/manifest.ts'
import type { ImageStore } from '../images/store/store.ts'
import { placesToPass } from '../images/tests/kept.ts'
import { judgeSignatures, whyUntrusted } from '../images/trust/signatures.ts'
import { signifySignature } from '../images/trust/signify.ts'
import type { Trust } from '../site/schema.ts'
import { SETTINGS, SiteSettings } from '../site/settings.ts'
import type { Store } from '../state/store.ts'
import { PLACE, Place } from '../nodes/places.ts'
import { SWAP, Swap } from '../nodes/swaps.ts'
import { identitiesOf } from './identity.ts'
import { ViewIndex, bootMac } from './index-view.ts'
import { type BootImage, type BootNode, bootImage, bootNode } from './view.ts'

const DESIRED = 'desired/'
/** Kinds of events after which the view may be another. */
const MATTERS =
  /^(site\.applied|machine\.(placed|moved|unplaced|forgotten)|node\.(place\.|replaced|swap)|image\.|state\.restored)/
/** An image is published in several steps; its name comes last. */
const CALM = 100

/**
 * Keeps the view of what nodes should boot up to date with desired state, images and places, and tells whoever serves
 * nodes. Only nodes that changed are looked at again.
 */
export class ViewCompiler implements AsyncDisposable {
  readonly #store: Store
  readonly #images: ImageStore
  readonly #logger: Logger
  readonly #stop = new AbortController()
  readonly #nodes = new Map<string, { readonly revision: number; readonly node: BootNode }>()
  readonly #manifests = new Map<string, Manifest>()
  readonly #listeners = new Set<(index: ViewIndex) => void>()
  #index: ViewIndex | undefined
  #watchers: readonly FSWatcher[] = []
  #timer: NodeJS.Timeout | undefined
  #compiling: Promise<void> = Promise.resolve()
  #watching: Promise<void> | undefined

  private constructor(store: Store, images: ImageStore, logger: Logger) {
    this.#store = store
    this.#images = images
    this.#logger = logger
  }

  static async start(store: Store, images: ImageStore, logger: Logger): Promise<ViewCompiler> {
    const compiler = new ViewCompiler(store, images, logger)
    const revision = await store.revision()
    await compiler.refresh()
    compiler.#watching = compiler.#follow(revision)
    // Builds and tests publish without asking a server.
    compiler.#watchers = ['names', 'about'].map(folder => watch(join(images.dir, folder), () => compiler.#soon()))
    return compiler
  }

  /** What is in force; undefined before the first site was applied. */
  index(): ViewIndex | undefined {
    return this.#index
  }

  onChange(listener: (index: ViewIndex) => void): void {
    this.#listeners.add(listener)
    if (this.#index !== undefined) listener(this.#index)
  }

  /** Resolves when everything that was true when it was called is in the view. */
  refresh(): Promise<void> {
    const next = this.#compiling.then(() => this.#compile())
    this.#compiling = next.catch((error: unknown) =>
      this.#logger.error({ err: error }, 'what nodes should boot cannot be worked out'),
    )
    return next
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.refresh().catch(() => {})
    }, CALM)
  }

  async #follow(after: number): Promise<void> {
    for await (const events of this.#store.watch(after, this.#stop.signal))
      if (events.some(event => MATTERS.test(event.kind))) await this.refresh().catch(() => {})
  }

  async #compile(): Promise<void> {
    const entry = await this.#store.get(SETTINGS)
    if (entry === undefined) return
    const settings = SiteSettings.parse(JSON.parse(entry.value))
    const nodes = await this.#compileNodes()
    const references = new Set(nodes.flatMap(({ image }) => image ?? []))
    if (settings.discovery !== null) references.add(settings.discovery)
    const images: Record<string, BootImage> = {}
    const channels = channelsIn(await this.#store.list(CHANNEL))
    const promoted = new Map(channels.map(({ name, channel, moves }) => [`${name}@${channel}`, moves[0]]))
    for (const reference of [...references].sort()) {
      const image = await this.#image(reference, promoted.get(reference), settings.trust)
      if (image !== undefined) images[reference] = image
    }
    const seen = (await this.#store.list(PLACE)).map(
      ({ key, value }) => [key.slice(PLACE.length), Place.parse(JSON.parse(value))] as const,
    )
    const { places, waiting } = identitiesOf(nodes, new Map(seen), node => bootMac(settings, node))
    const swaps = (await this.#store.list(SWAP)).map(({ value }) => Swap.parse(JSON.parse(value)))
    const content = {
      settings,
      nodes,
      images,
      places,
      ...(Object.keys(waiting).length > 0 && { waiting }),
      ...(swaps.length > 0 && { swaps }),
    }
    const version = createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 32)
    if (version === this.#index?.view.version) return
    this.#index = new ViewIndex({ version, ...content })
    for (const listener of this.#listeners) listener(this.#index)
  }

  async #compileNodes(): Promise<BootNode[]> {
    const entries = await this.#store.list(DESIRED)
    const there = new Set<string>()
    const nodes = entries.map(({ key, value, revision }) => {
      const name = key.slice(DESIRED.length)
      there.add(name)
      const known = this.#nodes.get(name)
      if (known?.revision === revision) return known.node
      const node = bootNode(name, JSON.parse(value) as Record<string, unknown>)
      this.#nodes.set(name, { revision, node })
      return node
    })
    for (const name of this.#nodes.keys()) if (!there.has(name)) this.#nodes.delete(name)
    return nodes
  }

  /**
   * NAME@sha256:… is that one, NAME@CHANNEL what the channel points to; NAME, and a channel that never pointed to anything,
   * the newest that may be booted. Where none may, the newest, so that it can be said what is wrong with it.
   */
  async #image(reference: string, promoted: Move | undefined, trust: Trust): Promise<BootImage | undefined> {
    const [name = '', at] = reference.split('@')
    try {
      const pinned = at?.startsWith('sha256:') === true ? at : promoted?.digest
      if (pinned !== undefined) {
        const image = await this.#bootImage(pinned as Digest, trust)
        return promoted === undefined ? image : { ...image, promoted: { at: promoted.at, by: promoted.by } }
      }
      const images = await this.#images.images(name)
      for (const { digest } of images) {
        const image = await this.#bootImage(digest, trust)
        if (image.untested === undefined && image.untrusted === undefined) return image
      }
      return images[0] && (await this.#bootImage(images[0].digest, trust))
    } catch (error) {
      this.#logger.warn({ err: error, image: reference }, 'image cannot be used')
      return undefined
    }
  }

  async #bootImage(digest: Digest, trust: Trust): Promise<BootImage> {
    const manifest = this.#manifests.get(digest) ?? (await this.#images.manifest(digest))
    this.#manifests.set(digest, manifest)
    const untested = await placesToPass(this.#images, digest, manifest)
    const { signatures } = await this.#images.about(digest)
    const untrusted = whyUntrusted(manifest, signatures, trust)
    const good = judgeSignatures(manifest, signatures, trust).find(({ isGood }) => isGood)
    return {
      ...bootImage(digest, manifest),
      ...(untested.length > 0 && { untested }),
      ...(untrusted !== undefined && { untrusted }),
      ...(good && { signature: signifySignature(good.signature) }),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers) watcher.close()
    await this.#watching
    await this.#compiling
  }
}
