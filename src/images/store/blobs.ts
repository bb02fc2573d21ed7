import { createHash } from 'node:crypto'
import { type FileHandle, open, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { isErrno } from '../../state/files.ts'
import { type Blob, explainDisk, hashFile, moveInto, seal, sizeOf } from './disk.ts'
import { StoreLock } from './lock.ts'
import { ownedName } from './owner.ts'
import { claimPartial, givePartialUp } from './partial.ts'

const SHA256 = /^[0-9a-f]{64}$/
const READ_ONLY = 0o444
const SMALL = 16 * 2 ** 20

/** A blob that is open: it can be read to its end even if it is removed meanwhile. Whoever asked for it closes it. */
export interface OpenBlob {
  readonly handle: FileHandle
  readonly size: number
}

/**
 * Immutable content in files that are named by their digest:
 *
 *     const squashfs = await store.writeBlob(file => exec('mksquashfs', [root, file]))
 *
 * A blob is written under another name, brought safely to disk, and only then gets its own: whoever sees it sees all of it.
 */
export class BlobStore {
  readonly dir: string
  protected readonly lock: StoreLock

  protected constructor(dir: string) {
    this.dir = dir
    this.lock = new StoreLock(join(dir, 'lock'))
  }

  /** A path that nobody else uses, for `adopt`. What a process leaves there is removed some time after its end. */
  temporary(): string {
    return join(this.dir, 'tmp', ownedName())
  }

  /** Where a blob is, if it is there. */
  pathOf(sha256: string): string {
    if (!SHA256.test(sha256)) throw new MusterError('BLOB_UNKNOWN', `${sha256} is not a sha256 in hex`)
    return join(this.dir, 'blobs/sha256', sha256.slice(0, 2), sha256)
  }

  async has(sha256: string): Promise<boolean> {
    return (await sizeOf(this.pathOf(sha256))) !== undefined
  }

  /** Those that are not here. The others are as if just written: no cleaning up takes them within the grace period. */
  missing(digests: readonly string[]): Promise<string[]> {
    return this.lock.run(async () => {
      const missing: string[] = []
      for (const sha256 of new Set(digests)) if (!(await touch(this.pathOf(sha256)))) missing.push(sha256)
      return missing
    })
  }

  /**
   * Makes a finished temporary file a blob. Its digest is worked out, unless whoever wrote it did that on the way. The
   * file is gone afterwards, whatever happens.
   */
  async adopt(temporary: string, known?: Blob): Promise<Blob> {
    return this.#orRemove(temporary, async () => {
      const blob = known ?? (await hashFile(temporary))
      const size = await sizeOf(temporary)
      if (size !== blob.size)
        throw new MusterError('DIGEST_MISMATCH', `${blob.sha256} has ${blob.size} bytes, not ${size ?? 'none'}`)
      await seal(temporary, READ_ONLY)
      // One that is there may be about to be cleaned up, which is decided under the lock; a new one is not.
      if (await this.has(blob.sha256)) await this.lock.run(() => this.place(temporary, blob))
      else await this.place(temporary, blob)
      return blob
    })
  }

  /** Has `write` fill a file and makes that a blob. */
  async writeBlob(write: (temporary: string) => Promise<unknown>): Promise<Blob> {
    const temporary = this.temporary()
    await this.#orRemove(temporary, () => write(temporary))
    return this.adopt(temporary)
  }

  put(bytes: Uint8Array | string): Promise<Blob> {
    return this.writeBlob(file => writeFile(file, bytes, { flag: 'wx', mode: 0o600 }))
  }

  /** What arrives becomes the blob of that digest, or nothing at all; it is never in memory as a whole. */
  async receive(sha256: string, chunks: AsyncIterable<Uint8Array>, limit: number): Promise<Blob> {
    const temporary = this.temporary()
    const known = await this.#orRemove(temporary, async () => {
      const hash = createHash('sha256')
      let size = 0
      await using handle = await open(temporary, 'wx', 0o600)
      for await (const chunk of chunks) {
        size += chunk.length
        if (size > limit) throw new MusterError('BODY_TOO_LARGE', `a blob may have ${limit} bytes`)
        hash.update(chunk)
        await handle.appendFile(chunk)
      }
      const found = hash.digest('hex')
      if (found !== sha256) throw new MusterError('DIGEST_MISMATCH', `what arrived is ${found}, not ${sha256}`)
      return { sha256, size }
    })
    return this.adopt(temporary, known)
  }

  /** A small blob, which is checked; a large one is not read at all. */
  async read(sha256: string, limit = SMALL): Promise<Buffer> {
    const { handle, size } = await this.openBlob(sha256)
    await using _ = handle
    if (size > limit) throw new MusterError('IMAGE_DAMAGED', `${sha256} has ${size} bytes; ${limit} would be many`)
    const bytes = await handle.readFile()
    const found = createHash('sha256').update(bytes).digest('hex')
    if (found !== sha256) throw new MusterError('IMAGE_DAMAGED', `${sha256} has other content: ${found}`)
    return bytes
  }

  async openBlob(sha256: string, expectedSize?: number): Promise<OpenBlob> {
    const handle = await open(this.pathOf(sha256), 'r').catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) throw new MusterError('BLOB_UNKNOWN', `there is no blob ${sha256}`)
      throw error
    })
    const { size } = await handle.stat()
    if (expectedSize === undefined || expectedSize === size) return { handle, size }
    await handle.close()
    throw new MusterError('IMAGE_DAMAGED', `${sha256} has ${size} bytes, not ${expectedSize}`)
  }

  /** A file for what is being downloaded; it holds what an earlier attempt got. */
  partial(sha256: string): Promise<string> {
    return claimPartial(join(this.dir, 'tmp'), sha256)
  }

  /** Leaves a file of `partial` for a later attempt. */
  keepPartial(file: string): Promise<void> {
    return givePartialUp(file)
  }

  /** What is there already is replaced: should it have been damaged, it is whole again. */
  protected place(sealed: string, { sha256 }: Blob): Promise<void> {
    return moveInto(sealed, this.pathOf(sha256))
  }

  async #orRemove<Result>(temporary: string, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      await rm(temporary, { force: true })
      throw explainDisk(error, this.dir)
    }
  }
}

async function touch(file: string): Promise<boolean> {
  const now = new Date()
  try {
    await utimes(file, now, now)
    return true
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false
    throw error
  }
}
