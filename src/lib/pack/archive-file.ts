import { constants, type FileHandle, open } from 'node:fs/promises'

/**
 * A large file that is written once, and read once long after. It goes past the page cache where the file system lets it
 * (O_DIRECT): a cache that was filled with it would be of no use to anybody, and filling it costs more than the disk does.
 * Bytes that are read and written come from `alignedBuffers`.
 */
export class ArchiveFile implements AsyncDisposable {
  readonly #plain: FileHandle
  #direct: FileHandle | undefined

  private constructor(plain: FileHandle, direct: FileHandle | undefined) {
    this.#plain = plain
    this.#direct = direct
  }

  static async create(file: string): Promise<ArchiveFile> {
    const plain = await open(file, 'wx+')
    return new ArchiveFile(plain, await openDirect(file, constants.O_RDWR))
  }

  static async open(file: string): Promise<ArchiveFile> {
    const plain = await open(file, 'r')
    return new ArchiveFile(plain, await openDirect(file, constants.O_RDONLY))
  }

  async size(): Promise<number> {
    const found = await this.#plain.stat()
    return found.isFile() ? found.size : Number.NaN
  }

  /** Some bytes from a multiple of `BLOCK` on, at most a buffer full of them; none at the end. */
  async read(buffer: Buffer, position: number): Promise<number> {
    const length = buffer.length
    const { bytesRead } = await this.#try(handle => handle.read(buffer, { length, position }))
    return bytesRead
  }

  async write(bytes: Buffer, position: number): Promise<void> {
    const whole = position % BLOCK === 0 ? bytes.length - (bytes.length % BLOCK) : 0
    const written = whole > 0 ? (await this.#try(handle => handle.write(bytes, 0, whole, position))).bytesWritten : 0
    if (written < bytes.length) await this.overwrite(bytes.subarray(written), position + written)
  }

  /** Of any length, anywhere, from any buffer. */
  async overwrite(bytes: Uint8Array, position: number): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await this.#plain.write(bytes, at, bytes.length - at, position + at)
      at += bytesWritten
    }
  }

  async #try<Result>(work: (handle: FileHandle) => Promise<Result>): Promise<Result> {
    if (this.#direct === undefined) return work(this.#plain)
    try {
      return await work(this.#direct)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
    }
    // It was opened, but this file system or its disk wants it otherwise.
    await this.#direct?.close()
    this.#direct = undefined
    return work(this.#plain)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#plain.close(), this.#direct?.close()])
  }
}

/** As much as any disk wants. */
export const BLOCK = 4096

const openDirect = (file: string, how: number): Promise<FileHandle | undefined> =>
  open(file, how | constants.O_DIRECT).catch(() => undefined)

/** Of what browsers have, this is all we need. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer }
}

/** They begin at a page: memory that WebAssembly could use does, other buffers need not. */
export function alignedBuffers(count: number, size: number): Buffer[] {
  const pages = Math.ceil((count * size) / 65_536)
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages })
  return Array.from({ length: count }, (_, index) => Buffer.from(buffer, index * size, size))
}
