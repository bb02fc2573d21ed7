/**
 * Scalars of one line, and `|` blocks, for the fast reader. Each function starts at the scalar's first character, leaves
 * the cursor after its last one and gives its text, or gives `undefined` for anything it is not sure of.
 */
import {
  BACKSLASH,
  COLON,
  COMMA,
  type Cursor,
  DASH,
  DOUBLE_QUOTE,
  HASH,
  NEWLINE,
  OPEN_LIST,
  SINGLE_QUOTE,
  SPACE,
  TAB,
} from './cursor.ts'

/** A plain scalar outside brackets. It ends before ` #`, before `: ` or with the line. */
export function readPlain(cursor: Cursor): string | undefined {
  const { text, at: start } = cursor
  if (!startsPlain(text, start)) return undefined
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (code <= COLON) {
      if (code === NEWLINE || (code === COLON && isBlank(text.charCodeAt(at + 1)))) break
      if (code === HASH && text.charCodeAt(at - 1) === SPACE) break
      if (code === TAB) return undefined
    }
    at++
  }
  return finishPlain(cursor, start, at)
}

/** A plain scalar inside brackets, where `,`, `[`, `]`, `{` and `}` end it too. */
export function readFlowPlain(cursor: Cursor): string | undefined {
  const { text, at: start } = cursor
  if (!startsPlain(text, start) || text.charCodeAt(start) === COLON) return undefined
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === NEWLINE || isFlowIndicator(code)) break
    if (code === COLON && (isBlank(text.charCodeAt(at + 1)) || isFlowIndicator(text.charCodeAt(at + 1)))) break
    if (code === HASH && text.charCodeAt(at - 1) === SPACE) break
    if (code === TAB) return undefined
    at++
  }
  return finishPlain(cursor, start, at)
}

function finishPlain(cursor: Cursor, start: number, stop: number): string | undefined {
  let end = stop
  while (end > start && cursor.text.charCodeAt(end - 1) === SPACE) end--
  cursor.at = end
  return end === start ? undefined : cursor.text.slice(start, end)
}

function startsPlain(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  if (code === DASH || code === COLON) {
    const next = text.charCodeAt(at + 1)
    return !isBlank(next) && !isFlowIndicator(next)
  }
  return code > 127 || STARTS_PLAIN[code] === 1
}

const NEVER_FIRST = new Set('\t\n ,[]{}#&*!|>\'"%@`?')
const STARTS_PLAIN = Uint8Array.from({ length: 128 }, (_, code) =>
  code > 31 && !NEVER_FIRST.has(String.fromCharCode(code)) ? 1 : 0,
)

const isBlank = (code: number): boolean => code === SPACE || code === NEWLINE || code === TAB

// [ and ] and { and } are two apart in ASCII, and { is 32 above [.
const isFlowIndicator = (code: number): boolean =>
  code === COMMA || (code >= OPEN_LIST && ((code & ~32) === OPEN_LIST || (code & ~32) === OPEN_LIST + 2))

export const isQuote = (code: number): boolean => code === DOUBLE_QUOTE || code === SINGLE_QUOTE

export function readQuoted(cursor: Cursor): string | undefined {
  return cursor.text.charCodeAt(cursor.at) === DOUBLE_QUOTE ? readDoubleQuoted(cursor) : readSingleQuoted(cursor)
}

function readSingleQuoted(cursor: Cursor): string | undefined {
  const { text } = cursor
  let value = ''
  let start = cursor.at + 1
  for (let at = start; ; at++) {
    const code = text.charCodeAt(at)
    if (code === NEWLINE) return undefined
    if (code !== SINGLE_QUOTE) continue
    value += text.slice(start, at)
    cursor.at = at + 1
    if (text.charCodeAt(at + 1) !== SINGLE_QUOTE) return value
    start = ++at
  }
}

function readDoubleQuoted(cursor: Cursor): string | undefined {
  const { text } = cursor
  let value = ''
  let start = cursor.at + 1
  for (let at = start; ; at++) {
    const code = text.charCodeAt(at)
    if (code === NEWLINE) return undefined
    if (code === DOUBLE_QUOTE) {
      cursor.at = at + 1
      return value + text.slice(start, at)
    }
    if (code !== BACKSLASH) continue
    const escape = readEscape(text, at + 1)
    if (escape === undefined) return undefined
    value += text.slice(start, at) + escape.value
    start = at + 1 + escape.length
    at = start - 1
  }
}

const ESCAPES = new Map(
  Object.entries({
    '0': '\0',
    b: '\b',
    e: '\u001B',
    f: '\f',
    n: '\n',
    r: '\r',
    t: '\t',
    '"': '"',
    '/': '/',
    '\\': '\\',
  }),
)

function readEscape(text: string, at: number): { value: string; length: number } | undefined {
  const letter = text.charAt(at)
  const value = ESCAPES.get(letter)
  if (value !== undefined) return { value, length: 1 }
  const digits = letter === 'x' ? 2 : letter === 'u' ? 4 : 0
  const hex = text.slice(at + 1, at + 1 + digits)
  if (digits === 0 || hex.length < digits || !/^[0-9a-fA-F]+$/.test(hex)) return undefined
  return { value: String.fromCodePoint(Number.parseInt(hex, 16)), length: 1 + digits }
}

/**
 * `|` and `|-` with their lines, which are indented more than `column`, where the key or dash above them is. Leaves the
 * cursor at the start of the first line that is not part of it.
 */
export function readLiteral(cursor: Cursor, column: number): string | undefined {
  const { text } = cursor
  cursor.at++
  const strip = text.charCodeAt(cursor.at) === DASH
  if (strip) cursor.at++
  cursor.skipSpaces()
  if (text.charCodeAt(cursor.at) !== NEWLINE) return undefined
  cursor.toNextLine(cursor.at)

  let newlines = ''
  while (text.charCodeAt(cursor.at) === NEWLINE) {
    newlines += '\n'
    cursor.toNextLine(cursor.at)
  }
  cursor.skipSpaces()
  const indent = cursor.at - cursor.lineStart
  if (indent <= column || cursor.at === cursor.end || text.charCodeAt(cursor.at) === NEWLINE) return undefined
  cursor.at = cursor.lineStart

  let value = ''
  while (cursor.at < cursor.end) {
    const contentStart = cursor.lineStart + indent
    while (cursor.at < contentStart && text.charCodeAt(cursor.at) === SPACE) cursor.at++
    if (text.charCodeAt(cursor.at) === NEWLINE) {
      newlines += '\n'
      cursor.toNextLine(cursor.at)
      continue
    }
    if (cursor.at < contentStart) break
    cursor.skipSpaces()
    // Whether a line of too many spaces belongs to the text depends on what follows it.
    if (text.charCodeAt(cursor.at) === NEWLINE) return undefined
    const lineEnd = text.indexOf('\n', cursor.at)
    value += newlines + text.slice(contentStart, lineEnd)
    newlines = '\n'
    cursor.toNextLine(lineEnd)
  }
  cursor.at = cursor.lineStart
  return strip ? value : `${value}\n`
}
