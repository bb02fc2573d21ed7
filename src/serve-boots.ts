import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ApiClient } from './api/client.ts'
import { RemoteImages } from './api/client-images.ts'
import { ViewIndex } from './boot/index-view.ts'
import { BootService } from './boot/service.ts'
import { type BootImage, BootView } from './boot/view.ts'
import type { Call } from './cli/define.ts'
import { fetchBlob } from './images/download.ts'
import { type ImageStore, openImageStore } from './images/store/store.ts'
import { makeDirectory } from './lib/dirs.ts'
import { MusterError, messageOf } from './lib/errors.ts'
import { type ServeOptions, parseListen } from './serve-options.ts'

/** So often the control role is asked whether anything is new. */
const EVERY = 2000

interface BootLife {
  readonly logger: Logger
  readonly data: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stopped: Promise<void>
  readonly signal: AbortSignal
  readonly ready: () => Promise<void>
}

/** The boot role alone: it answers from its own copy of everything, and needs the control role only for news. */
export async function serveBoots({ options }: Call<ServeOptions>, life: BootLife): Promise<void> {
  const { logger, data, env } = life
  if (options.control === undefined)
    throw new MusterError('USAGE', 'a boot server needs to know where the control role is', {
      hint: 'name it with --control https://host:7171, and give a token of the role operator in MUSTER_TOKEN',
    })
  const client = new ApiClient({ server: options.control, token: env['MUSTER_TOKEN'] })
  const images = await openImageStore(join(data, 'images'))
  const dir = join(data, 'boot')
  await makeDirectory(dir, 0o700)
  await using service = await BootService.start({
    dir,
    logger,
    blobs: images,
    send: async batch => client.send('POST', '/api/v1/boot/sightings', batch),
    ...(options.bootListen !== undefined && { listen: parseListen(options.bootListen) }),
    ...(options.ownDnsmasq === true && { externalDnsmasq: true }),
  })
  const replica = new Replica(client, images, service, join(dir, 'view.json'), logger)
  await replica.load()
  await service.settled()
  logger.info({ control: options.control, data, boot: service.urls() }, 'ready')
  await life.ready()
  const following = replica.follow(life.signal)
  await life.stopped
  logger.info('stopping')
  await following
}

/** A copy of what the control role says nodes should boot, and of the images they boot. */
class Replica {
  readonly #client: ApiClient
  readonly #images: ImageStore
  readonly #service: BootService
  readonly #file: string
  readonly #logger: Logger
  /** As the control role last said it. */
  #wanted: BootView | undefined
  /** As nodes are answered: images that have not arrived yet are still the ones before. */
  #served: BootView | undefined
  #isAway = false

  constructor(client: ApiClient, images: ImageStore, service: BootService, file: string, logger: Logger) {
    this.#client = client
    this.#images = images
    this.#service = service
    this.#file = file
    this.#logger = logger
  }

  /** From the last time, however long ago that was. */
  async load(): Promise<void> {
    const text = await readFile(this.#file, 'utf8').catch(() => undefined)
    if (text === undefined) return
    try {
      this.#serve(BootView.parse(JSON.parse(text)))
    } catch (error) {
      this.#logger.error({ err: error, file: this.#file }, 'the copy of the site is damaged: waiting for a new one')
    }
  }

  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#ask(signal)
        if (this.#isAway) this.#logger.info('the control role is back')
        this.#isAway = false
      } catch (error) {
        if (!this.#isAway && !signal.aborted)
          this.#logger.warn({ reason: messageOf(error) }, 'the control role is away: nodes boot as it last said')
        this.#isAway = true
      }
      await pause(EVERY, undefined, { signal }).catch(() => {})
    }
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const reply = await this.#client.get<unknown>('/api/v1/boot/view', { known: this.#wanted?.version })
    const view = (reply as { unchanged?: true }).unchanged === true ? this.#wanted : BootView.parse(reply)
    if (view === undefined || view.version === this.#served?.version) return
    this.#wanted = view
    await this.#adopt(view)
    for (const image of Object.values(view.images)) await this.#fetch(image, signal)
    await this.#adopt(view)
  }

  /** With the newest images that are here as a whole. */
  async #adopt(view: BootView): Promise<void> {
    const images: Record<string, BootImage> = {}
    let whole = true
    for (const [reference, image] of Object.entries(view.images)) {
      const here = await Promise.all(blobsOf(image).map(blob => this.#images.has(blob.sha256)))
      const usable = here.every(Boolean) ? image : this.#served?.images[reference]
      whole &&= usable === image
      if (usable !== undefined) images[reference] = usable
    }
    const next = whole ? view : { ...view, images, version: `${view.version}-partial` }
    if (next.version === this.#served?.version) return
    const text = JSON.stringify(next)
    await writeFile(`${this.#file}.new`, text, { mode: 0o600, flush: true })
    await rename(`${this.#file}.new`, this.#file)
    this.#serve(next)
  }

  async #fetch(image: BootImage, signal: AbortSignal): Promise<void> {
    for (const blob of blobsOf(image)) {
      if (await this.#images.has(blob.sha256)) continue
      this.#logger.info({ image: image.name, sha256: blob.sha256, size: blob.size }, 'fetching artefact')
      await fetchBlob(new RemoteImages(this.#client), this.#images, blob, () => {}, signal)
    }
  }

  #serve(view: BootView): void {
    this.#served = view
    this.#service.update(new ViewIndex(view))
  }
}

const blobsOf = ({ manifest, kernel, initrd, squashfs, cpio }: BootImage) =>
  [manifest, kernel, initrd, squashfs, cpio].filter(blob => blob !== undefined)
