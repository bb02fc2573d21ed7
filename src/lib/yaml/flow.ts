/** `[lists]` and `{ maps }` in brackets, on one line or several, for the fast reader. */
import {
  CLOSE_LIST,
  CLOSE_MAP,
  COLON,
  COMMA,
  type Cursor,
  DASH,
  DOT,
  HASH,
  NEWLINE,
  OPEN_LIST,
  OPEN_MAP,
  SPACE,
} from './cursor.ts'
import { MAX_DEPTH } from './limits.ts'
import { plainValue } from './plain.ts'
import { isQuote, readFlowPlain, readQuoted } from './scalars.ts'
import type { MapEntry, Tree } from './tree.ts'

export const opensFlow = (code: number): boolean => code === OPEN_LIST || code === OPEN_MAP

/**
 * Starts at the opening bracket and leaves the cursor after the closing one; gives `undefined` for anything unsure.
 * Lines after the first are indented by `minIndent` at least, but the last bracket may stand right below its key.
 */
export function readFlow(cursor: Cursor, minIndent: number, depth: number): Tree | undefined {
  return new FlowReader(cursor, minIndent).read(depth, 1)
}

class FlowReader {
  readonly #cursor: Cursor
  readonly #minIndent: number

  constructor(cursor: Cursor, minIndent: number) {
    this.#cursor = cursor
    this.#minIndent = minIndent
  }

  /** `depth` counts the collections around this one, `level` only those in brackets. */
  read(depth: number, level: number): Tree | undefined {
    if (depth > MAX_DEPTH) return undefined
    return this.#cursor.text.charCodeAt(this.#cursor.at) === OPEN_MAP
      ? this.#readMap(depth, level)
      : this.#readList(depth, level)
  }

  #readList(depth: number, level: number): Tree | undefined {
    const cursor = this.#cursor
    const { line } = cursor
    const column = cursor.columnOf(cursor.at++)
    const items: Tree[] = []
    for (;;) {
      if (!this.#skipBlanks(level)) return undefined
      if (this.#take(CLOSE_LIST)) return { kind: 'list', items, line, column }
      const item = this.#readValue(depth, level)
      if (item === undefined || !this.#skipBlanks(level)) return undefined
      items.push(item)
      if (!this.#take(COMMA) && cursor.text.charCodeAt(cursor.at) !== CLOSE_LIST) return undefined
    }
  }

  #readMap(depth: number, level: number): Tree | undefined {
    const cursor = this.#cursor
    const { line } = cursor
    const column = cursor.columnOf(cursor.at++)
    const entries = new Map<string, MapEntry>()
    for (;;) {
      if (!this.#skipBlanks(level)) return undefined
      if (this.#take(CLOSE_MAP)) return { kind: 'map', entries, line, column }
      const keyLine = cursor.line
      const keyColumn = cursor.columnOf(cursor.at)
      const key = this.#readKey()
      if (key === undefined || entries.has(key) || !this.#skipBlanks(level)) return undefined
      const value = this.#readValue(depth, level)
      if (value === undefined || !this.#skipBlanks(level)) return undefined
      entries.set(key, { value, line: keyLine, column: keyColumn })
      if (!this.#take(COMMA) && cursor.text.charCodeAt(cursor.at) !== CLOSE_MAP) return undefined
    }
  }

  #readKey(): string | undefined {
    const cursor = this.#cursor
    const quoted = isQuote(cursor.text.charCodeAt(cursor.at))
    const key = quoted ? readQuoted(cursor) : readFlowPlain(cursor)
    if (key === undefined || !this.#take(COLON)) return undefined
    if (quoted) return key
    // `{a:[b]}` and `{a:}` have a meaning, but nobody writes them.
    const next = cursor.text.charCodeAt(cursor.at)
    return key !== '<<' && (next === SPACE || next === NEWLINE) ? key : undefined
  }

  #readValue(depth: number, level: number): Tree | undefined {
    const cursor = this.#cursor
    const { line } = cursor
    const column = cursor.columnOf(cursor.at)
    const code = cursor.text.charCodeAt(cursor.at)
    if (opensFlow(code)) return this.read(depth + 1, level + 1)
    if (isQuote(code)) {
      const value = readQuoted(cursor)
      return value === undefined ? undefined : { kind: 'scalar', value, line, column }
    }
    const source = readFlowPlain(cursor)
    return source === undefined ? undefined : { kind: 'scalar', value: plainValue(source), line, column }
  }

  /** Over spaces, newlines and comments. False at a line that is indented too little, and at the end of the text. */
  #skipBlanks(level: number): boolean {
    const cursor = this.#cursor
    const { text } = cursor
    const startLine = cursor.line
    for (;;) {
      cursor.skipSpaces()
      const code = text.charCodeAt(cursor.at)
      if (code === NEWLINE) {
        cursor.toNextLine(cursor.at)
        if (cursor.at === cursor.end) return false
      } else if (code === HASH) {
        // Even at the start of a line: there the package accepts a comment before some items and not behind others.
        if (text.charCodeAt(cursor.at - 1) !== SPACE) return false
        cursor.at = text.indexOf('\n', cursor.at)
      } else {
        return cursor.line === startLine || this.#isIndented(code, level)
      }
    }
  }

  #isIndented(code: number, level: number): boolean {
    const indent = this.#cursor.at - this.#cursor.lineStart
    // At the start of a line `---` and `...` end a document.
    if (indent === 0 && (code === DASH || code === DOT)) return false
    if (indent >= this.#minIndent) return true
    return level === 1 && indent === this.#minIndent - 1 && (code === CLOSE_LIST || code === CLOSE_MAP)
  }

  #take(code: number): boolean {
    if (this.#cursor.text.charCodeAt(this.#cursor.at) !== code) return false
    this.#cursor.at++
    return true
  }
}
