/**
 * Where the fast reader is in its text. The text always ends with a newline, so that no scan along a line needs to
 * look for its end.
 */
export class Cursor {
  readonly text: string
  readonly end: number
  at = 0
  line = 1
  lineStart = 0
  /** Indentation of the line `toContent` stopped at; -1 at the end of the text. */
  indent = -1

  constructor(text: string) {
    this.text = text.endsWith('\n') ? text : `${text}\n`
    this.end = this.text.length
  }

  /** The column of an offset in this line, from 1. */
  columnOf(offset: number): number {
    return offset - this.lineStart + 1
  }

  /** To the start of the line after the newline at `offset`. */
  toNextLine(offset: number): void {
    this.line++
    this.lineStart = offset + 1
    this.at = offset + 1
  }

  skipSpaces(): void {
    while (this.text.charCodeAt(this.at) === SPACE) this.at++
  }

  /** From the start of a line, over blank lines and comments, to the first character that means something. */
  toContent(): void {
    while (this.at < this.end) {
      this.skipSpaces()
      const code = this.text.charCodeAt(this.at)
      if (code === HASH) {
        this.toNextLine(this.text.indexOf('\n', this.at))
      } else if (code === NEWLINE) {
        this.toNextLine(this.at)
      } else {
        this.indent = this.at - this.lineStart
        return
      }
    }
    this.indent = -1
  }

  /** After a value: to the content of the lines below. False when something but a comment follows on its line. */
  finishLine(): boolean {
    const valueEnd = this.at
    this.skipSpaces()
    const code = this.text.charCodeAt(this.at)
    if (code === NEWLINE) this.toNextLine(this.at)
    else if (code === HASH && this.at > valueEnd) this.toNextLine(this.text.indexOf('\n', this.at))
    else return false
    this.toContent()
    return true
  }
}

export const TAB = 9
export const NEWLINE = 10
export const SPACE = 32
export const BANG = 33
export const DOUBLE_QUOTE = 34
export const HASH = 35
export const SINGLE_QUOTE = 39
export const COMMA = 44
export const DASH = 45
export const DOT = 46
export const COLON = 58
export const OPEN_LIST = 91
export const BACKSLASH = 92
export const CLOSE_LIST = 93
export const OPEN_MAP = 123
export const BAR = 124
export const CLOSE_MAP = 125
