import type { BuildReport } from '../images/build/report.ts'
import type { Io } from './io.ts'
import { duration } from './output.ts'

const TICK = 120
const WIDTH = 28

/**
 * How a long action goes: on a terminal one line that changes, with what is being done now; elsewhere one line per stage
 * when it is done. Everything that programs print goes to `log` as well.
 */
export class Progress implements BuildReport, Disposable {
  readonly #io: Io
  readonly #log: (chunk: Buffer | string) => void
  readonly #now: () => number
  readonly #timer: NodeJS.Timeout | undefined
  #image = ''
  #title = ''
  #since = 0
  #line = ''
  #isShown = false
  /** When somebody else got the terminal: what is going on is theirs, and so is the time. */
  #pausedAt: number | undefined

  constructor(io: Io, log: (chunk: Buffer | string) => void = () => {}, now: () => number = () => performance.now()) {
    this.#io = io
    this.#log = log
    this.#now = now
    if (io.stderr.isTTY === true) this.#timer = setInterval(() => this.#show(), TICK).unref()
  }

  begin(image: string, title: string): void {
    if (image !== this.#image) {
      this.#image = image
      this.#write(`${image}\n`)
    }
    this.#title = title
    this.#since = this.#now()
    this.#line = ''
    this.#pausedAt = undefined
    this.#log(`=== ${image}: ${title}\n`)
  }

  output(chunk: Buffer): void {
    this.#log(chunk)
    const line = chunk
      .toString('utf8')
      .split(/[\r\n]+/)
      .findLast(text => text.trim() !== '')
    if (line !== undefined) this.#line = line
  }

  note(line: string): void {
    this.#log(`--- ${line}\n`)
    this.#line = line
  }

  end(how: 'made' | 'cached' | 'failed'): void {
    const seconds = ((this.#pausedAt ?? this.#now()) - this.#since) / 1000
    const outcome =
      how === 'cached' ? 'cached' : how === 'failed' ? `failed after ${duration(seconds)}` : duration(seconds)
    this.#log(`=== ${this.#image}: ${this.#title}: ${outcome}\n`)
    this.#write(`  ${this.#title.padEnd(WIDTH)}  ${outcome}\n`)
    this.#title = ''
    this.#line = ''
  }

  /** Leaves the terminal to somebody else until the stage ends. */
  pause(): void {
    this.#pausedAt = this.#now()
    this.#clear()
  }

  #write(text: string): void {
    this.#clear()
    this.#io.stderr.write(text)
  }

  #show(): void {
    if (this.#pausedAt !== undefined || (this.#title === '' && this.#line === '')) return
    const seconds = (this.#now() - this.#since) / 1000
    // oxlint-disable-next-line no-control-regex
    const shown = this.#line.replaceAll(/[\u0000-\u001F\u007F-\u009F]+/g, ' ')
    const text = `  ${this.#title.padEnd(WIDTH)}  ${duration(seconds)}  ${shown}`
    const columns = (this.#io.stderr as { columns?: number }).columns ?? 80
    this.#clear()
    this.#io.stderr.write(text.slice(0, Math.max(20, columns - 1)))
    this.#isShown = true
  }

  #clear(): void {
    if (this.#isShown) this.#io.stderr.write('\r\u001B[K')
    this.#isShown = false
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#clear()
  }
}
