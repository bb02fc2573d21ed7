import { createHash } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { MusterError } from '../lib/errors.ts'
import { type Blob, explainDisk } from './store/disk.ts'
import type { BlobStore } from './store/blobs.ts'

/** Where blobs can be fetched. */
export interface BlobSource {
  /** The bytes from there on. A connection that breaks is SERVER_UNREACHABLE. */
  download(blob: Blob, offset: number, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** So often without a single new byte, then it is given up. */
const ATTEMPTS = 5
const FIRST_PAUSE = 100

/**
 * Fetches a blob into the store. A connection that breaks is made anew, and goes on where it broke; so does the next who
 * fetches it, if this one gives up. `moved` is told how many bytes came closer.
 */
export async function fetchBlob(
  source: BlobSource,
  store: BlobStore,
  blob: Blob,
  moved: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const file = await store.partial(blob.sha256)
  try {
    await using handle = await open(file, 'a+', 0o600)
    const download = new Download(handle, blob, moved)
    await download.takeUp()
    const resumed = download.size > 0
    let whole = await download.finish(source, signal)
    if (!whole && resumed) {
      // What was left is damaged, as after a power loss.
      await download.startOver()
      whole = await download.finish(source, signal)
    }
    if (!whole) throw new MusterError('DIGEST_MISMATCH', `what came is not ${blob.sha256}`)
  } catch (error) {
    const known = explainDisk(error, store.dir)
    if (isUseless(known)) await rm(file, { force: true })
    else await store.keepPartial(file)
    throw known
  }
  await store.adopt(file, blob)
}

const isUseless = (error: unknown): boolean =>
  error instanceof MusterError && ['DIGEST_MISMATCH', 'DISK_FULL'].includes(error.code)

class Download {
  readonly #handle: FileHandle
  readonly #blob: Blob
  readonly #moved: (bytes: number) => void
  #hash = createHash('sha256')
  size = 0

  constructor(handle: FileHandle, blob: Blob, moved: (bytes: number) => void) {
    this.#handle = handle
    this.#blob = blob
    this.#moved = moved
  }

  /** With what is in the file already. */
  async takeUp(): Promise<void> {
    for await (const chunk of this.#handle.createReadStream({ start: 0, autoClose: false }))
      this.#count(chunk as Buffer)
    if (this.size > this.#blob.size) await this.startOver()
  }

  async startOver(): Promise<void> {
    await this.#handle.truncate(0)
    this.#moved(-this.size)
    this.#hash = createHash('sha256')
    this.size = 0
  }

  /** Whether it is the right one in the end. */
  async finish(source: BlobSource, signal: AbortSignal): Promise<boolean> {
    let attempts = 0
    while (this.size < this.#blob.size) {
      const before = this.size
      const problem = await this.#receive(source, signal)
      attempts = this.size > before ? 0 : attempts + 1
      if (attempts === ATTEMPTS) throw problem
      if (attempts > 0) await pause(FIRST_PAUSE * 2 ** attempts)
    }
    return this.#hash.digest('hex') === this.#blob.sha256
  }

  /** Until the connection ends; why it did. */
  async #receive(source: BlobSource, signal: AbortSignal): Promise<MusterError> {
    const problem = (why: string, cause?: unknown): MusterError =>
      new MusterError('SERVER_UNREACHABLE', `${why} (at byte ${this.size} of ${this.#blob.size})`, {
        hint: 'try again: it goes on from there',
        cause,
      })
    try {
      for await (const chunk of source.download(this.#blob, this.size, signal)) {
        if (this.size + chunk.length > this.#blob.size)
          throw new MusterError('DIGEST_MISMATCH', `${this.#blob.sha256} is longer than ${this.#blob.size} bytes`)
        await this.#handle.appendFile(chunk)
        this.#count(chunk)
      }
      return problem('the connection ended early')
    } catch (error) {
      if (error instanceof MusterError && error.code === 'SERVER_UNREACHABLE') return problem(error.message, error)
      throw error
    }
  }

  #count(chunk: Uint8Array): void {
    this.#hash.update(chunk)
    this.size += chunk.length
    this.#moved(chunk.length)
  }
}
