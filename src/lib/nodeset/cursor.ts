/**
 * A place in a text that is being read, and the errors that point at it: columns count from 1.
 */
import { MusterError, type ErrorCode } from '../errors.ts'

export class Cursor {
  readonly text: string
  at = 0

  constructor(text: string) {
    this.text = text
  }

  get done(): boolean {
    return this.at >= this.text.length
  }

  /** The character here, whole even when it takes two code units; '' at the end. */
  get next(): string {
    const point = this.text.codePointAt(this.at)
    return point === undefined ? '' : String.fromCodePoint(point)
  }

  /** Goes past what a sticky expression matches here; '' if it does not. */
  take(sticky: RegExp): string {
    sticky.lastIndex = this.at
    const taken = sticky.exec(this.text)?.[0] ?? ''
    this.at += taken.length
    return taken
  }

  /** Goes past white space; true if there was any. */
  skipSpace(): boolean {
    return this.take(/\s*/y) !== ''
  }

  fail(what: string, at: number = this.at, code: ErrorCode = 'NODESET_INVALID'): MusterError {
    const text = this.text.length <= 60 && !/\s/.test(this.text.replaceAll(' ', '')) ? ` ${this.text}` : ''
    return new MusterError(code, `node set${text}, column ${at + 1}: ${what}`)
  }
}

/** A character as errors show it. */
export const shown = (character: string): string =>
  character === '' ? 'the end' : /^[!-~]$/.test(character) ? character : JSON.stringify(character)

export const counted = (count: number): string => count.toLocaleString('en-US')
