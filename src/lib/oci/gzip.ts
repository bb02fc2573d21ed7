import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** Large enough that compressing blocks apart costs nothing worth mentioning. */
const BLOCK = 4 * 1024 * 1024
const LEVEL = 6
/** One of Node's four threads stays free to read what is compressed next. */
const AT_ONCE = Math.min(availableParallelism(), 3)

const compress = promisify(gzip)

/**
 * Compresses on several processors: cut into blocks, each a gzip member of its own, one after the other (RFC 1952,
 * 2.2). What comes out depends on what goes in only, not on how many processors there are or how it comes in pieces;
 * Node puts no time into the header.
 */
export class BlockGzip {
  readonly #write: (chunk: Buffer) => Promise<void>
  readonly #running: Promise<Buffer>[] = []
  #pieces: Buffer[] = []
  #length = 0

  constructor(write: (chunk: Buffer) => Promise<void>) {
    this.#write = write
  }

  async write(chunk: Buffer): Promise<void> {
    for (let start = 0; start < chunk.length;) {
      const piece = chunk.subarray(start, start + BLOCK - this.#length)
      this.#pieces.push(piece)
      this.#length += piece.length
      start += piece.length
      if (this.#length === BLOCK) await this.#compressBlock()
    }
  }

  async end(): Promise<void> {
    if (this.#length > 0) await this.#compressBlock()
    while (this.#running.length > 0) await this.#writeOldest()
  }

  async #compressBlock(): Promise<void> {
    const block = compress(Buffer.concat(this.#pieces, this.#length), { level: LEVEL })
    // Its failure is met when its turn to be written comes; until then nobody waits for it.
    block.catch(() => {})
    this.#running.push(block)
    this.#pieces = []
    this.#length = 0
    if (this.#running.length >= AT_ONCE) await this.#writeOldest()
  }

  async #writeOldest(): Promise<void> {
    const block = await this.#running.shift()
    if (block !== undefined) await this.#write(block)
  }
}
