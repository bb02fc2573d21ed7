import { stripVTControlCharacters } from 'node:util'

const KEPT = 64 * 1024
const LINES = 20
const LONGEST = 300
const PANIC = 'Kernel panic - not syncing'

/** The end of what a console showed. */
export class Screen {
  #text = ''
  #hasPanicked = false

  add(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString('latin1')).slice(-KEPT)
    this.#hasPanicked ||= this.#text.slice(-chunk.length - PANIC.length).includes(PANIC)
  }

  /** Whether the kernel has given up: nothing will come after that. */
  get hasPanicked(): boolean {
    return this.#hasPanicked
  }

  /** What can be printed of the last lines. */
  lastLines(): string[] {
    const text = stripVTControlCharacters(Buffer.from(this.#text, 'latin1').toString('utf8'))
    const lines = text.split(/[\r\n]+/).map(line =>
      line
        .replaceAll(/[^\P{C}\t]/gu, '')
        .trimEnd()
        .slice(0, LONGEST),
    )
    return lines.filter(line => line !== '').slice(-LINES)
  }
}
