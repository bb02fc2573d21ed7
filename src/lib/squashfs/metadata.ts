import { constants, zstdCompressSync } from 'node:zlib'

/**
 * Metadata (inodes, directory listings and the tables) is a stream cut into blocks of 8 KiB, each compressed by itself
 * behind a 16-bit size whose top bit says that the bytes are stored as they are. Places in it are pairs: where the
 * compressed block starts, counted from the first, and the offset in the uncompressed block. That is why blocks are
 * compressed as soon as they are full.
 */
export interface MetadataPlace {
  readonly block: number
  readonly offset: number
}

export class MetadataWriter {
  readonly #level: number
  readonly #done: Buffer[] = []
  readonly #starts: number[] = []
  readonly #current = Buffer.allocUnsafe(METADATA_SIZE)
  #used = 0
  #length = 0

  constructor(level: number) {
    this.#level = level
  }

  /** Where the next byte goes. */
  get place(): MetadataPlace {
    return { block: this.#length, offset: this.#used }
  }

  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + METADATA_SIZE - this.#used)
      this.#current.set(part, this.#used)
      this.#used += part.length
      at += part.length
      if (this.#used === METADATA_SIZE) this.#endBlock()
    }
  }

  /** All blocks, and where each of them starts. */
  finish(): { readonly bytes: Buffer; readonly starts: readonly number[] } {
    if (this.#used > 0) this.#endBlock()
    return { bytes: Buffer.concat(this.#done), starts: this.#starts }
  }

  #endBlock(): void {
    const raw = this.#current.subarray(0, this.#used)
    const frame = zstdCompressSync(raw, {
      pledgedSrcSize: raw.length,
      chunkSize: 2 * METADATA_SIZE,
      params: { [constants.ZSTD_c_compressionLevel]: this.#level },
    })
    const stored = frame.length >= raw.length
    const body = stored ? Buffer.from(raw) : frame
    const head = Buffer.alloc(2)
    head.writeUInt16LE(body.length + (stored ? METADATA_STORED : 0))
    this.#done.push(head, body)
    this.#starts.push(this.#length)
    this.#length += head.length + body.length
    this.#used = 0
  }
}

export const METADATA_SIZE = 8192
const METADATA_STORED = 0x8000
