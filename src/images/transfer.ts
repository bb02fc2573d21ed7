import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { MusterError } from '../lib/errors.ts'
import { type BlobSource, fetchBlob } from './download.ts'
import { type Digest, type Manifest, manifestText } from './manifest.ts'
import { type About, mergeAbout } from './store/about.ts'
import type { Blob } from './store/disk.ts'
import { type ImageName, findImage } from './store/reference.ts'
import type { ImageStore } from './store/store.ts'

/** Where images can be sent. */
export interface ImageTarget {
  /** Which of these blobs it does not have. */
  missing(digests: readonly string[]): Promise<readonly string[]>
  upload(blob: Blob, content: Readable, signal?: AbortSignal): Promise<void>
  publish(manifest: Manifest): Promise<Digest>
  /** Adds what is known of the image; its report is among the blobs. */
  describe(image: ImageName, about: About): Promise<void>
}

/** Where images come from. */
export interface ImageSource extends BlobSource {
  /** The images of a name newest first. */
  list(): Promise<readonly ImageName[]>
  manifest(image: ImageName): Promise<Manifest>
  about(image: ImageName): Promise<About>
}

export interface TransferOptions {
  /** Told in bytes how much of what there is to move has been moved. */
  readonly progress?: (done: number, total: number) => void
  readonly signal?: AbortSignal
}

export interface Transferred extends ImageName {
  /** What was moved; the rest was there already. */
  readonly blobs: number
  readonly bytes: number
}

const AT_ONCE = 2

/** Sends an image: of its blobs only those that are missing there. */
export async function pushImage(
  target: ImageTarget,
  store: ImageStore,
  reference: string,
  options: TransferOptions = {},
): Promise<Transferred> {
  const { name, digest, manifest } = await store.resolve(reference)
  const about = await store.about(digest)
  const blobs = await wanted(manifest, about, target)
  const moved = meter(blobs, options)
  await inParallel(blobs, options.signal, async (blob, signal) => {
    const { handle } = await store.openBlob(blob.sha256, blob.size)
    const file = handle.createReadStream({ highWaterMark: 2 ** 18 })
    const content = Readable.from(counted(file, moved), { objectMode: false })
    try {
      await target.upload(blob, content, signal)
    } finally {
      content.destroy()
      file.destroy()
    }
  })
  const published = await target.publish(manifest)
  if (published !== digest) throw new MusterError('DIGEST_MISMATCH', `${digest} became ${published} on the other side`)
  if (about.signatures.length > 0 || about.report !== undefined) await target.describe({ name, digest }, about)
  return { name, digest, ...sumOf(blobs) }
}

/** Fetches an image: of its blobs only those that are missing here. What broke off before is taken up again. */
export async function pullImage(
  source: ImageSource,
  store: ImageStore,
  reference: string,
  options: TransferOptions = {},
): Promise<Transferred> {
  const { name, digest } = findImage(await source.list(), reference)
  const manifest = await source.manifest({ name, digest })
  const found = `sha256:${createHash('sha256').update(manifestText(manifest)).digest('hex')}`
  if (found !== digest) throw new MusterError('DIGEST_MISMATCH', `the manifest that came is ${found}, not ${digest}`)
  const about = await source.about({ name, digest })
  const blobs = await wanted(manifest, about, store)
  const moved = meter(blobs, options)
  await inParallel(blobs, options.signal, (blob, signal) => fetchBlob(source, store, blob, moved, signal))
  await store.publish(manifest)
  await store.describe(digest, known => mergeAbout(known, about))
  return { name, digest, ...sumOf(blobs) }
}

/** Each blob once, though an image may name it twice. */
async function wanted(manifest: Manifest, { report }: About, where: Pick<ImageTarget, 'missing'>): Promise<Blob[]> {
  const all = [...manifest.artefacts, ...(report === undefined ? [] : [report])]
  const blobs = new Map(all.map(({ sha256, size }) => [sha256, { sha256, size }]))
  const missing = new Set(await where.missing([...blobs.keys()]))
  return [...blobs.values()].filter(blob => missing.has(blob.sha256))
}

function meter(blobs: readonly Blob[], { progress }: TransferOptions): (bytes: number) => void {
  const total = sumOf(blobs).bytes
  let done = 0
  progress?.(0, total)
  return bytes => progress?.((done += bytes), total)
}

async function* counted(chunks: AsyncIterable<Buffer>, moved: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    moved(chunk.length)
    yield chunk
  }
}

const sumOf = (blobs: readonly Blob[]): { blobs: number; bytes: number } => ({
  blobs: blobs.length,
  bytes: blobs.reduce((sum, blob) => sum + blob.size, 0),
})

/** The first failure ends the others, and is told when they have ended. */
async function inParallel<Item>(
  items: readonly Item[],
  outer: AbortSignal | undefined,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController()
  const signal = outer === undefined ? failed.signal : AbortSignal.any([outer, failed.signal])
  const queue = items.values()
  const worker = async (): Promise<void> => {
    for (const item of queue) {
      if (signal.aborted) return
      await work(item, signal).catch((error: unknown) => failed.abort(error))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  if (outer?.aborted === true) throw new MusterError('ABORTED', 'interrupted')
  failed.signal.throwIfAborted()
}
