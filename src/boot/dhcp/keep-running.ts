import { messageOf } from '../../lib/errors.ts'
import { type Program, startProgram } from '../../lib/program.ts'

export interface KeepRunningOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly onLine: (line: string, pid: number) => void
  /** It has died: with which last words, and in how many milliseconds it is started again. */
  readonly onDied?: (words: string, delay: number, pid: number | undefined) => void
  /** Milliseconds to wait before the next start, from those waited before the last one and how long it ran since. */
  readonly delay?: (previous: number, ran: number) => number
}

const FIRST = 1000
const MOST = 60_000
/** Who has run for so long had no trouble starting. */
const CALM = 60_000
/** Output that was under way when it ended is read a moment later. */
const LAST_WORDS = 100
const TAIL = 4

/** A second, two, four … a minute; back to a second after a minute that went well. */
export const backOff = (previous: number, ran: number): number =>
  previous === 0 || ran >= CALM ? FIRST : Math.min(previous * 2, MOST)

/** A program that is started again whenever it dies, with growing pauses. */
export class KeptRunning implements AsyncDisposable {
  readonly #options: KeepRunningOptions
  #current: Running | undefined
  #timer: NodeJS.Timeout | undefined
  #delay = 0
  #deaths = 0
  #lastWords: string | undefined
  #isWanted = false
  #turn: Promise<void> = Promise.resolve()

  constructor(options: KeepRunningOptions) {
    this.#options = options
  }

  get pid(): number | undefined {
    return this.#current?.program.pid
  }

  get deaths(): number {
    return this.#deaths
  }

  /** Of its last death. */
  get lastWords(): string | undefined {
    return this.#lastWords
  }

  signal(signal: NodeJS.Signals): void {
    this.#current?.program.signal(signal)
  }

  /** Ends it, if it runs, and starts it; at once, whatever happened before. */
  restart(): Promise<void> {
    return this.#next(async () => {
      await this.#end()
      this.#isWanted = true
      this.#adopt(await this.#start())
    })
  }

  /**
   * Starts another one, which takes the place of the one that runs when it is ready, and so without a gap. If it ends
   * before that, or `whenReady` fails, all stays as it was.
   */
  replace(whenReady: (pid: number) => Promise<void>): Promise<void> {
    return this.#next(async () => {
      const fresh = await this.#start()
      const ended = fresh.words().then(words => {
        throw new Error(words)
      })
      // That it ends later on is a death like any other.
      ended.catch(() => {})
      try {
        await Promise.race([whenReady(fresh.program.pid), ended])
      } catch (error) {
        await fresh.program.stop()
        throw error
      }
      const old = this.#current
      clearTimeout(this.#timer)
      this.#isWanted = true
      this.#adopt(fresh)
      await old?.program.stop()
    })
  }

  #next(work: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(work)
    this.#turn = mine.catch(() => {})
    return mine
  }

  async #end(): Promise<void> {
    this.#isWanted = false
    clearTimeout(this.#timer)
    const old = this.#current
    this.#current = undefined
    await old?.program.stop()
  }

  async #start(): Promise<Running> {
    const running = new Running()
    running.program = await startProgram(this.#options.command, this.#options.args, {
      onLine: line => {
        running.heard(line)
        this.#options.onLine(line, running.program.pid)
      },
    })
    return running
  }

  #adopt(running: Running): void {
    this.#current = running
    void running.words().then(words => this.#died(running, words))
  }

  #died(running: Running, words: string): void {
    if (this.#current !== running) return
    this.#current = undefined
    this.#again(words, Date.now() - running.began, running.program.pid)
  }

  #again(words: string, ran: number, pid?: number): void {
    this.#lastWords = words
    if (!this.#isWanted) return
    this.#deaths += 1
    this.#delay = (this.#options.delay ?? backOff)(this.#delay, ran)
    this.#options.onDied?.(words, this.#delay, pid)
    this.#timer = setTimeout(() => {
      this.#next(async () => {
        if (this.#isWanted && this.#current === undefined) this.#adopt(await this.#start())
      }).catch((error: unknown) => this.#again(messageOf(error), 0))
    }, this.#delay).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#next(() => this.#end())
  }
}

class Running {
  readonly began = Date.now()
  readonly #tail: string[] = []
  declare program: Program

  heard(line: string): void {
    this.#tail.push(line)
    if (this.#tail.length > TAIL) this.#tail.shift()
  }

  /** How it ended, and what it said last. */
  async words(): Promise<string> {
    const how = await this.program.ended
    await new Promise(resolve => setTimeout(resolve, LAST_WORDS))
    return [typeof how === 'number' ? `exit status ${how}` : how, ...this.#tail].join('\n')
  }
}
