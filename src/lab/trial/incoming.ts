import type { Socket } from 'node:net'

const NEWLINE = 0x0a

interface Waiting {
  /** Bytes that must be there. */
  readonly count: number
  readonly timer: NodeJS.Timeout
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/**
 * What comes over a connection, read by line or by number of bytes, by one reader at a time. `patience` is always how many
 * milliseconds nothing may come. A serial line brings every byte on its own: as little as possible happens for each.
 */
export class Incoming {
  #chunks: Buffer[] = []
  #length = 0
  #isKept = false
  #hasSpoken = false
  #ended: Error | undefined
  #waiting: Waiting | undefined

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.#hear(chunk))
    socket.on('error', () => this.end(new Error('the line is closed')))
    socket.on('close', () => this.end(new Error('the line is closed')))
  }

  /** Whoever waits, now or later, waits in vain. */
  end(why: Error): void {
    this.#ended ??= why
    this.#waiting?.reject(this.#ended)
  }

  /** Waits until the other side has said anything at all; what it says before `keep` is forgotten. */
  async spoken(patience: number): Promise<void> {
    if (!this.#hasSpoken) await this.#until(0, patience)
  }

  keep(): void {
    this.#isKept = true
  }

  /** The next line, without its end; fails when it has more than `most` bytes. */
  async line(most: number, patience: number): Promise<string> {
    for (;;) {
      const all = this.#joined()
      const end = all.indexOf(NEWLINE)
      if (end > most || (end === -1 && all.length > most)) throw new Error('a line is longer than it may be')
      if (end !== -1) return this.#take(end + 1).toString('latin1', 0, end)
      await this.#until(all.length + 1, patience)
    }
  }

  async bytes(count: number, patience: number): Promise<Buffer> {
    if (this.#length < count) await this.#until(count, patience)
    return this.#take(count)
  }

  #hear(chunk: Buffer): void {
    this.#hasSpoken = true
    if (this.#isKept) {
      this.#chunks.push(chunk)
      this.#length += chunk.length
    }
    if (this.#waiting === undefined) return
    if (this.#length >= this.#waiting.count) this.#waiting.resolve()
    else this.#waiting.timer.refresh()
  }

  #joined(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] ?? Buffer.alloc(0)
  }

  #take(count: number): Buffer {
    const all = this.#joined()
    const rest = all.subarray(count)
    this.#chunks = rest.length > 0 ? [rest] : []
    this.#length = rest.length
    return all.subarray(0, count)
  }

  async #until(count: number, patience: number): Promise<void> {
    if (this.#ended !== undefined) throw this.#ended
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const late = (): void => reject(new Error(`nothing came for ${patience / 1000} s`))
    this.#waiting = { count, timer: setTimeout(late, patience), resolve, reject }
    try {
      await promise
    } finally {
      clearTimeout(this.#waiting.timer)
      this.#waiting = undefined
    }
  }
}
