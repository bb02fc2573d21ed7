import { Script } from 'node:vm'

/**
 * Regular expressions as goss has them, in Go's syntax (RE2), run by JavaScript's engine. What differs is rewritten:
 *
 *     (?i)ssh        → /ssh/i
 *     [[:digit:]]+   → [0-9]+
 *     (?P<year>\d+)  → (?<year>\d+)
 *     \Aab\z  {x}    → only at the beginning and end; braces that repeat nothing are just braces
 *
 * Throws a SyntaxError that says what is wrong.
 */
export function goRegExp(source: string): RegExp {
  const [, flags = '', rest = source] = /^\(\?([a-zA-Z]+)\)(.*)$/s.exec(source) ?? []
  if (/[^ims]/.test(flags)) throw new SyntaxError(`the flags (?${flags}) are not known: i, m and s are`)
  try {
    return new RegExp(translate(rest), `u${[...new Set(flags)].join('')}`)
  } catch (error) {
    // It says 'Invalid regular expression: /…/u: why'; the reason is what people need.
    const reason = error instanceof Error ? error.message.replace(/^Invalid regular expression: .*: /s, '') : ''
    throw new SyntaxError(reason, { cause: error })
  }
}

/** Long enough for every honest expression; V8 goes back and forth for years with those that are not. */
const PATIENCE = 2000
const SEARCH = new Script('lines.findIndex(line => pattern.test(line))')

/** The number of the first line that matches, -1 where there is none, undefined where it takes too long to find out. */
export function firstMatch(pattern: RegExp, lines: readonly string[]): number | undefined {
  try {
    return SEARCH.runInNewContext({ pattern, lines }, { timeout: PATIENCE }) as number
  } catch (error) {
    // Not `instanceof Error`: it is an error of the other context.
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  }
}

const SYNTAX = /[\\^$.*+?()[\]{}|/]/

/** Pieces of an expression, longest first, and what each becomes. */
const PIECES: readonly (readonly [RegExp, (match: string) => string])[] = [
  [
    /\\Q.*?(?:\\E|$)/sy,
    match =>
      match
        .slice(2)
        .replace(/\\E$/, '')
        .replaceAll(new RegExp(SYNTAX, 'g'), String.raw`\$&`),
  ],
  [/\\A/y, () => String.raw`(?<![\s\S])`],
  [/\\z/y, () => String.raw`(?![\s\S])`],
  [/\\a/y, () => String.raw`\x07`],
  [/\\x\{[0-9a-fA-F]+\}/y, match => match.replace('x', 'u')],
  [/\\[pP][A-Z]/y, match => `${match.slice(0, 2)}{${match[2]}}`],
  [/\\[^a-zA-Z0-9]/sy, match => (SYNTAX.test(match[1] ?? '') ? match : (match[1] ?? ''))],
  [/\\./sy, match => match],
  [/\(\?P</y, () => '(?<'],
  [/\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]/sy, charactersOf],
  [/\{\d+(?:,\d*)?\}/y, match => match],
  [/[{}\]]/y, match => `\\${match}`],
  [/./suy, match => match],
]

function translate(source: string): string {
  let result = ''
  for (let at = 0; at < source.length;) {
    const [length, text] = pieceAt(source, at)
    result += text
    at += length
  }
  return result
}

function pieceAt(source: string, at: number): readonly [number, string] {
  for (const [pattern, become] of PIECES) {
    pattern.lastIndex = at
    const match = pattern.exec(source)?.[0]
    if (match !== undefined) return [match.length, become(match)]
  }
  return [1, source.charAt(at)]
}

const CLASSES: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: String.raw`\x00-\x7F`,
  blank: String.raw`\t `,
  cntrl: String.raw`\x00-\x1F\x7F`,
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: String.raw`!-\/:-@\[-\`{-~`,
  space: String.raw`\t\n\v\f\r `,
  upper: 'A-Z',
  word: String.raw`\w`,
  xdigit: '0-9A-Fa-f',
}

/** A set such as [^][:space:]_]. */
function charactersOf(set: string): string {
  const [, start = '', inner = ''] = /^(\[\^?)(.*)\]$/s.exec(set) ?? []
  const body = inner.replaceAll(/^\]|\[:(\^?)(\w+):\]|\\x\{([0-9a-fA-F]+)\}|\\(.)|\[/gs, (...found: string[]) => {
    const [whole = '', negated, name, code, escaped] = found
    if (name !== undefined) {
      const characters = negated === '' ? CLASSES[name] : undefined
      if (characters === undefined) throw new SyntaxError(`${whole} is not a class of characters`)
      return characters
    }
    if (code !== undefined) return `\\u{${code}}`
    if (escaped !== undefined) return /[a-zA-Z0-9\-^\\[\]]/.test(escaped) ? whole : escaped
    return `\\${whole}`
  })
  return `${start}${body}]`
}
