import { BLOCK, invalidArchive } from './member.ts'

/** Hands out a stream in pieces of the length asked for; of what is skipped it holds one chunk at a time. */
export class ByteStream {
  readonly #chunks: AsyncIterator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array()
  #position = 0

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]()
  }

  get position(): number {
    return this.#position
  }

  /** Whether nothing more comes. */
  async isAtEnd(): Promise<boolean> {
    while (this.#chunk.length === 0) if (!(await this.#load())) return true
    return false
  }

  async take(length: number): Promise<Buffer> {
    const taken = Buffer.allocUnsafe(length)
    for (let filled = 0; filled < length;) {
      const part = await this.#next(length - filled)
      taken.set(part, filled)
      filled += part.length
    }
    return taken
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0;) left -= (await this.#next(left)).length
  }

  /** Content is filled up to whole blocks. */
  async skipPadding(length: number): Promise<void> {
    await this.skip(paddingOf(length))
  }

  /** After the end of an archive only the zeros that fill up a tape may come. */
  async expectZerosToTheEnd(): Promise<void> {
    do {
      if (!isZero(this.#chunk))
        throw invalidArchive('the archive has more behind its end: it may be two, one after the other')
    } while (await this.#load())
  }

  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  /** At most so many bytes, at least one. */
  async #next(limit: number): Promise<Uint8Array> {
    while (this.#chunk.length === 0) {
      if (!(await this.#load())) throw invalidArchive(`the archive is cut off after ${this.#position} bytes`)
    }
    const part = this.#chunk.subarray(0, limit)
    this.#chunk = this.#chunk.subarray(part.length)
    this.#position += part.length
    return part
  }

  async #load(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    if (done === true) return false
    this.#chunk = value
    return true
  }
}

export const paddingOf = (length: number): number => (BLOCK - (length % BLOCK)) % BLOCK

export const isZero = (bytes: Uint8Array): boolean => bytes.every(byte => byte === 0)
