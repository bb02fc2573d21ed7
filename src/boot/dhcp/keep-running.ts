import { MusterError, messageOf } from '../../lib/errors.ts'
import { type Program, startProgram } from '../../lib/program.ts'

export interface KeepRunningOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly onLine: (line: string) => void
  /** It runs. */
  readonly onStarted?: () => void
  /** It has died: with which last words, and in how many milliseconds it is started again. */
  readonly onDied?: (words: string, delay: number) => void
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
  readonly #tail: string[] = []
  #program: Program | undefined
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
    return this.#program?.pid
  }

  get deaths(): number {
    return this.#deaths
  }

  /** Of its last death. */
  get lastWords(): string | undefined {
    return this.#lastWords
  }

  signal(signal: NodeJS.Signals): boolean {
    this.#program?.signal(signal)
    return this.#program !== undefined
  }

  /** Starts it, or ends it and starts it anew; at once, whatever happened before. */
  restart(): Promise<void> {
    return this.#next(async () => {
      await this.#end()
      this.#isWanted = true
      await this.#start()
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
    const program = this.#program
    this.#program = undefined
    await program?.stop()
  }

  async #start(): Promise<void> {
    const began = Date.now()
    const program = await startProgram(this.#options.command, this.#options.args, { onLine: line => this.#heard(line) })
    this.#program = program
    this.#options.onStarted?.()
    void this.#watch(program, began)
  }

  async #watch(program: Program, began: number): Promise<void> {
    const how = await program.ended
    if (this.#program !== program) return
    this.#program = undefined
    const ran = Date.now() - began
    await new Promise(resolve => setTimeout(resolve, LAST_WORDS).unref())
    this.#died(typeof how === 'number' ? `exit status ${how}` : how, ran)
  }

  #heard(line: string): void {
    this.#tail.push(line)
    if (this.#tail.length > TAIL) this.#tail.shift()
    this.#options.onLine(line)
  }

  #died(how: string, ran: number): void {
    this.#lastWords = [how, ...this.#tail.splice(0)].join('\n')
    if (!this.#isWanted) return
    this.#deaths += 1
    this.#delay = (this.#options.delay ?? backOff)(this.#delay, ran)
    this.#options.onDied?.(this.#lastWords, this.#delay)
    this.#timer = setTimeout(() => {
      void this.#next(async () => {
        if (this.#isWanted && this.#program === undefined) await this.#start()
      }).catch((error: unknown) => this.#died(messageOf(error), 0))
    }, this.#delay).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#next(() => this.#end())
  }
}

/** What to say when it ended instead of doing what it was asked. */
export const endedError = (what: string, words: string | undefined): MusterError =>
  new MusterError('EXEC_FAILED', `${what} ended, and is started again`, { details: words?.split('\n') ?? [] })
