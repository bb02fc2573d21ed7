import { open, type FileHandle } from 'node:fs/promises'
import { MusterError } from '../errors.ts'
import type { Output } from './output.ts'
import type { Packed } from './packed.ts'

/** An archive written before, from which parts are taken over. Reads ahead, because what is unchanged lies in a row. */
export class Earlier {
  readonly #file: string
  readonly #handle: FileHandle
  readonly #ahead = Buffer.allocUnsafeSlow(AHEAD)
  #start = 0
  #length = 0

  private constructor(file: string, handle: FileHandle) {
    this.#file = file
    this.#handle = handle
  }

  /** Undefined when the file is gone or is not what was written then. */
  static async open({ file, size }: Packed): Promise<Earlier | undefined> {
    const handle = await open(file, 'r').catch(() => undefined)
    if (handle === undefined) return undefined
    const found = await handle.stat().catch(() => undefined)
    if (found?.isFile() === true && found.size === size) return new Earlier(file, handle)
    await handle.close()
    return undefined
  }

  /** False, with nothing appended, when the file has become too short meanwhile. */
  async copy(offset: number, length: number, output: Output): Promise<boolean> {
    const atHand = offset >= this.#start && offset + length <= this.#start + this.#length
    if (!atHand && (await this.#handle.stat()).size < offset + length) return false
    for (let at = offset; at < offset + length;) {
      const bytes = await this.#read(at, offset + length - at)
      await output.append(bytes)
      at += bytes.length
    }
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }

  /** Some bytes from there on, at most so many. */
  async #read(offset: number, most: number): Promise<Buffer> {
    if (offset < this.#start || offset >= this.#start + this.#length) {
      const { bytesRead } = await this.#handle.read(this.#ahead, { length: AHEAD, position: offset })
      if (bytesRead === 0) throw new MusterError('INTERNAL', `${this.#file} changed while it was read`)
      this.#start = offset
      this.#length = bytesRead
    }
    const from = offset - this.#start
    return this.#ahead.subarray(from, Math.min(from + most, this.#length))
  }
}

const AHEAD = 2 * 1024 * 1024
