import { isDeepStrictEqual } from 'node:util'
import { Output, linesOf } from './found.ts'
import { valuesAt } from './gjson.ts'
import { firstMatch, goRegExp } from './go-regexp.ts'
import { type Pattern, failingPatterns } from './patterns.ts'
import { parseConstraint } from './semver.ts'

/**
 * goss' matchers: whether what was found is what a test expects.
 *
 *     judge('0644', '0644')                      equality
 *     judge({ gt: 100 }, '128')                  text that is a number is compared as one
 *     judge(['wheel'], ['users', 'wheel'])       a list: each of them is among what was found
 *     judge(['root', '!/toor/'], new Output(…))  a list on output: patterns, line by line
 */
export interface Verdict {
  readonly ok: boolean
  /** For people, at most 200 characters each. */
  readonly expected: string
  readonly found: string
}

export function judge(expected: unknown, found: unknown): Verdict {
  if (Array.isArray(expected) && found instanceof Output) return judgePatterns(expected, found)
  try {
    return { ok: holds(expected, found), expected: shorten(textOf(expected)), found: shorten(textOf(found)) }
  } catch (error) {
    if (!(error instanceof Unfit)) throw error
    return { ok: false, expected: shorten(textOf(expected)), found: shorten(`${textOf(found)}: ${error.message}`) }
  }
}

/** What is no answer either way, such as 'abc' to {gt: 3}: it fails, also below a `not`. */
class Unfit extends Error {}

/** What stands behind the name of a matcher. */
interface Arguments {
  readonly text: string
  readonly regexp: string
  readonly constraint: string
  readonly number: number
  readonly length: number
  readonly value: unknown
  readonly matcher: unknown
  readonly matchers: readonly unknown[]
  readonly patterns: readonly unknown[]
  /** Keys, or paths in JSON, with a matcher each. */
  readonly keys: Readonly<Record<string, unknown>>
  readonly paths: Readonly<Record<string, unknown>>
}
export type Argument = keyof Arguments

interface Matcher {
  readonly argument: Argument
  holds(argument: never, found: unknown): boolean
}

export const MATCHERS: Readonly<Record<string, Matcher>> = {
  equal: matcher('value', (value, found) => isDeepStrictEqual(plain(value), plain(found))),
  'have-prefix': matcher('text', (text, found) => toText(found).startsWith(text)),
  'have-suffix': matcher('text', (text, found) => toText(found).endsWith(text)),
  'contain-substring': matcher('text', (text, found) => toText(found).includes(text)),
  'match-regexp': matcher('regexp', (source, found) => matches(source, toText(found))),
  gt: matcher('number', (limit, found) => toNumber(found) > limit),
  ge: matcher('number', (limit, found) => toNumber(found) >= limit),
  lt: matcher('number', (limit, found) => toNumber(found) < limit),
  le: matcher('number', (limit, found) => toNumber(found) <= limit),
  'contain-element': matcher('matcher', (inner, found) => anyHolds([inner], toList(found))),
  'contain-elements': matcher('matchers', (all, found) => matched(all, toList(found)) === all.length),
  'consist-of': matcher('matchers', (all, found) => {
    const list = toList(found)
    return list.length === all.length && matched(all, list) === all.length
  }),
  'have-len': matcher('length', (length, found) => lengthOf(found) === length),
  'have-key': matcher('matcher', (key, found) => anyHolds([key], Object.keys(toMap(found)))),
  'have-key-with-value': matcher('keys', (keys, found) => {
    const map = toMap(found)
    return Object.entries(keys).every(([key, value]) => Object.hasOwn(map, key) && holds(value, map[key]))
  }),
  'have-patterns': matcher('patterns', (patterns, found) => {
    return failingPatterns(patterns, asOutput(found)).length === 0
  }),
  not: matcher('matcher', (inner, found) => !holds(inner, found)),
  and: matcher('matchers', (all, found) => all.every(inner => holds(inner, found))),
  or: matcher('matchers', (all, found) => anyHolds(all, [found])),
  'semver-constraint': matcher('constraint', satisfies),
  gjson: matcher('paths', (paths, found) => {
    const document = toJson(found)
    return Object.entries(paths).every(([path, inner]) => {
      const value = valuesAt(document, path)
      return value !== undefined && holds(inner, value)
    })
  }),
}

function matcher<K extends Argument>(argument: K, holds: (argument: Arguments[K], found: unknown) => boolean): Matcher {
  return { argument, holds }
}

function holds(expected: unknown, found: unknown): boolean {
  if (typeof expected === 'boolean') return found === expected
  if (typeof expected === 'number') return toNumber(found) === expected
  if (typeof expected === 'string') return sameText(expected, found)
  if (Array.isArray(expected)) {
    if (found instanceof Output) return failingPatterns(expected, found).length === 0
    return matched(expected, toList(found)) === expected.length
  }
  const [name = '', argument] = Object.entries(expected as object)[0] ?? []
  const known = Object.hasOwn(MATCHERS, name) ? MATCHERS[name] : undefined
  if (known === undefined) throw new Unfit(`${name} is no matcher`)
  if (found instanceof Output && found.cut) throw new Unfit('there is more than a check looks at')
  return known.holds(argument as never, found)
}

/** A program ends its output with a line feed that nobody writes down. */
const sameText = (expected: string, found: unknown): boolean => {
  const text = toText(found)
  return text === expected || (found instanceof Output && text === `${expected}\n`)
}

/** Whether one of these holds for one of those; where none does but some could not say, nobody can. */
function anyHolds(matchers: readonly unknown[], values: readonly unknown[]): boolean {
  let unfit: Unfit | undefined
  for (const inner of matchers) {
    for (const value of values) {
      try {
        if (holds(inner, value)) return true
      } catch (error) {
        if (!(error instanceof Unfit)) throw error
        unfit = error
      }
    }
  }
  if (unfit !== undefined) throw unfit
  return false
}

/** How many of the matchers can have an element of their own. */
function matched(matchers: readonly unknown[], list: readonly unknown[]): number {
  const takenBy = new Map<number, number>()
  const fits = matchers.map(inner => list.flatMap((value, at) => (fitsAlone(inner, value) ? [at] : [])))
  const place = (which: number, tried: Set<number>): boolean =>
    (fits[which] ?? []).some(at => {
      if (tried.has(at)) return false
      tried.add(at)
      const owner = takenBy.get(at)
      if (owner !== undefined && !place(owner, tried)) return false
      takenBy.set(at, which)
      return true
    })
  return matchers.filter((_, which) => place(which, new Set())).length
}

/** Among many elements those of another kind are just not the one that is looked for. */
function fitsAlone(inner: unknown, value: unknown): boolean {
  try {
    return holds(inner, value)
  } catch (error) {
    if (error instanceof Unfit) return false
    throw error
  }
}

function matches(source: string, text: string): boolean {
  const at = firstMatch(goRegExp(source), [text])
  if (at === undefined) throw new Unfit('the expression takes too long')
  return at === 0
}

function satisfies(constraint: string, found: unknown): boolean {
  const test = parseConstraint(constraint)
  const versions = toList(found).map(toText)
  if (test === undefined) throw new Unfit(`${constraint} is no constraint`)
  if (versions.length === 0) throw new Unfit('there is no version')
  return versions.every(version => {
    const result = test(version.trim())
    if (result === undefined) throw new Unfit('is no semantic version')
    return result
  })
}

/** Numbers in YAML are text where text is asked for; what has several values is text of several lines. */
function toText(found: unknown): string {
  if (found instanceof Output) return found.text
  if (Array.isArray(found)) return found.map(toText).join('\n')
  if (typeof found === 'string' || typeof found === 'number' || typeof found === 'boolean') return String(found)
  throw new Unfit('is no text')
}

function toNumber(found: unknown): number {
  if (typeof found === 'number') return found
  const text = typeof found === 'boolean' ? '' : toText(found).trim()
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw new Unfit('is no number')
  return Number(text)
}

function toList(found: unknown): unknown[] {
  if (Array.isArray(found)) return found
  if (found instanceof Output) return found.lines
  return typeof found === 'string' ? linesOf(found) : [found]
}

function toMap(found: unknown): Readonly<Record<string, unknown>> {
  if (typeof found === 'object' && found !== null && !Array.isArray(found) && !(found instanceof Output))
    return found as Readonly<Record<string, unknown>>
  throw new Unfit('is no map')
}

function toJson(found: unknown): unknown {
  try {
    return JSON.parse(toText(found))
  } catch (error) {
    throw error instanceof Unfit ? error : new Unfit('is no JSON')
  }
}

/** Of text in bytes, as goss counts. */
function lengthOf(found: unknown): number {
  if (Array.isArray(found)) return found.length
  if (typeof found === 'string' || found instanceof Output) return Buffer.byteLength(toText(found))
  return Object.keys(toMap(found)).length
}

const asOutput = (found: unknown): Output => (found instanceof Output ? found : new Output(toText(found)))

/** Without prototypes and with text for output: what is compared is what one sees. */
function plain(value: unknown): unknown {
  if (value instanceof Output) return value.text
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}

/** Only the patterns that fail, and the line that should not be there. */
function judgePatterns(expected: readonly unknown[], found: Output): Verdict {
  const failing = failingPatterns(expected, found)
  const shown = failing.length === 0 ? expected.map(textOf) : failing.map(patternText)
  const reasons = [...new Set(failing.flatMap(({ line, reason }) => line ?? reason ?? []))]
  const text = reasons.length === 0 ? textOf(found) : reasons.map(reason => JSON.stringify(reason)).join(', ')
  return { ok: failing.length === 0, expected: shorten(`[${shown.join(', ')}]`), found: shorten(text) }
}

const patternText = ({ pattern }: Pattern): string => textOf(pattern)

function textOf(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(plain(value))
}

const MOST_SHOWN = 200

function shorten(text: string): string {
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN - 1)}…`
}
