import { createHash, type Hash } from 'node:crypto'
import { MusterError } from '../errors.ts'
import { ArchiveFile, alignedBuffers } from './archive-file.ts'

/** Appends to a new file in large pieces, which are written in the background while the next one is gathered. */
export class Output {
  readonly #file: ArchiveFile
  readonly #hash: Hash | undefined
  readonly #writing: { readonly buffer: Buffer; readonly done: Promise<void> }[] = []
  readonly #spare = alignedBuffers(AHEAD + 2, PIECE)
  #buffer = this.#another()
  #used = 0
  #flushed = 0

  private constructor(file: ArchiveFile, hash: Hash | undefined) {
    this.#file = file
    this.#hash = hash
  }

  /** With `hash`, the sha256 of what is appended is computed on the way: see `digest`. */
  static async create(file: string, { hash }: { readonly hash: boolean }): Promise<Output> {
    return new Output(await ArchiveFile.create(file), hash ? createHash('sha256') : undefined)
  }

  get position(): number {
    return this.#flushed + this.#used
  }

  async append(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + PIECE - this.#used)
      this.#buffer.set(part, this.#used)
      this.#used += part.length
      at += part.length
      if (this.#used === PIECE) await this.#send()
    }
  }

  /** Everything appended so far is in the file. */
  async flush(): Promise<void> {
    if (this.#used > 0) await this.#send()
    while (this.#writing.length > 0) await this.#reap()
  }

  /** Overwrites what was appended and flushed before. */
  async overwrite(bytes: Uint8Array, position: number): Promise<void> {
    await this.#file.overwrite(bytes, position)
  }

  digest(): string {
    return this.#hash?.digest('hex') ?? ''
  }

  /** The sha256 of the file as it is now, read back; for formats whose beginning is written last. */
  async digestOfFile(between: () => Promise<void>): Promise<string> {
    const hash = createHash('sha256')
    const buffers = [this.#another(), this.#another()] as const
    const bufferOf = (turn: number): Buffer => buffers[turn % 2 === 0 ? 0 : 1]
    const read = (turn: number): Promise<number> => this.#file.read(bufferOf(turn), turn * PIECE)
    let next = read(0)
    for (let turn = 0; turn * PIECE < this.#flushed; turn++) {
      const length = await next
      next = read(turn + 1)
      // Waited for in the next turn, unless something fails before.
      next.catch(() => {})
      hash.update(bufferOf(turn).subarray(0, length))
      await between()
    }
    await next
    return hash.digest('hex')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#writing.map(({ done }) => done))
    await this.#file[Symbol.asyncDispose]()
  }

  async #send(): Promise<void> {
    const piece = this.#buffer.subarray(0, this.#used)
    this.#hash?.update(piece)
    const position = this.#flushed
    // One write at a time: several to one file only wait for each other in the kernel, spinning.
    const done = (this.#writing.at(-1)?.done ?? Promise.resolve()).then(() => this.#file.write(piece, position))
    // A failure is met where the piece is reaped; until then it must not count as unhandled.
    done.catch(() => {})
    this.#writing.push({ buffer: this.#buffer, done })
    this.#flushed += this.#used
    this.#used = 0
    if (this.#writing.length > AHEAD) await this.#reap()
    this.#buffer = this.#another()
  }

  async #reap(): Promise<void> {
    const oldest = this.#writing.shift()
    await oldest?.done
    if (oldest !== undefined) this.#spare.push(oldest.buffer)
  }

  #another(): Buffer {
    const [buffer] = this.#spare.splice(-1)
    if (buffer === undefined) throw new MusterError('INTERNAL', 'more is being written than there are buffers')
    return buffer
  }
}

const PIECE = 1024 * 1024
const AHEAD = 3
