import { MusterError } from '../errors.ts'
import { ArchiveFile, BLOCK, alignedBuffers } from './archive-file.ts'
import type { Output } from './output.ts'
import type { Packed } from './packed.ts'

/** An archive written before, from which parts are taken over. Reads ahead, because what is unchanged lies in a row. */
export class Earlier {
  readonly #file: string
  readonly #archive: ArchiveFile
  readonly #ahead: Buffer
  #start = 0
  #length = 0

  private constructor(file: string, archive: ArchiveFile, ahead: Buffer) {
    this.#file = file
    this.#archive = archive
    this.#ahead = ahead
  }

  /** Undefined when the file is gone or is not what was written then. */
  static async open({ file, size }: Packed): Promise<Earlier | undefined> {
    const archive = await ArchiveFile.open(file).catch(() => undefined)
    const [ahead] = alignedBuffers(1, AHEAD)
    if (archive === undefined || ahead === undefined) return undefined
    if ((await archive.size().catch(() => 0)) === size) return new Earlier(file, archive, ahead)
    await archive[Symbol.asyncDispose]()
    return undefined
  }

  /** False, with nothing appended, when the file has become too short meanwhile. */
  async copy(offset: number, length: number, output: Output): Promise<boolean> {
    const atHand = offset >= this.#start && offset + length <= this.#start + this.#length
    if (!atHand && (await this.#archive.size()) < offset + length) return false
    for (let at = offset; at < offset + length;) {
      const bytes = await this.#read(at, offset + length - at)
      await output.append(bytes)
      at += bytes.length
    }
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#archive[Symbol.asyncDispose]()
  }

  /** Some bytes from there on, at most so many. */
  async #read(offset: number, most: number): Promise<Buffer> {
    if (offset < this.#start || offset >= this.#start + this.#length) {
      this.#start = offset - (offset % BLOCK)
      this.#length = await this.#archive.read(this.#ahead, this.#start)
      if (this.#start + this.#length <= offset)
        throw new MusterError('INTERNAL', `${this.#file} changed while it was read`)
    }
    const from = offset - this.#start
    return this.#ahead.subarray(from, Math.min(from + most, this.#length))
  }
}

const AHEAD = 2 * 1024 * 1024
