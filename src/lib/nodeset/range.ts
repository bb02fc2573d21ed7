/**
 * What stands between brackets, as codes (see digits.ts):
 *
 *   [1-10]       1…9, then 10 as a number of two digits
 *   [001-128]    zeros are kept: both ends must have the same length
 *   [1-9/2]      1, 3, 5, 7, 9
 *   [1, 3, 5-7]  white space is allowed
 */
import { counted, shown, type Cursor } from './cursor.ts'
import { codeOf, maxDigits, tidy, type Span } from './digits.ts'

/** Reads from '[' to past its ']'. Refuses more than `limit` numbers before it makes them. */
export function readBrackets(cursor: Cursor, limit: number): readonly Span[] {
  const opening = cursor.at
  const spans: Span[] = []
  let count = 0
  cursor.at++
  cursor.skipSpace()
  if (cursor.next === ']') throw cursor.fail('the brackets are empty', opening)
  for (;;) {
    cursor.skipSpace()
    if (cursor.done) throw cursor.fail('this [ is never closed', opening)
    const range = readRange(cursor)
    count += Math.floor((range.high - range.low) / range.step) + 1
    if (count > limit) throw cursor.fail(`these are ${counted(count)} numbers, the limit is ${counted(limit)}`, opening)
    addSpans(spans, range)
    cursor.skipSpace()
    if (cursor.done) throw cursor.fail('this [ is never closed', opening)
    if (cursor.next === ']') break
    if (cursor.next !== ',') throw cursor.fail(`expected , or ] after ${range.text}, found ${shown(cursor.next)}`)
    cursor.at++
  }
  cursor.at++
  return tidy(spans)
}

interface Range {
  readonly text: string
  readonly low: number
  readonly high: number
  readonly step: number
  /** The digits each number has at least. */
  readonly width: number
}

function readRange(cursor: Cursor): Range {
  const at = cursor.at
  const low = readNumber(cursor, 'a number')
  cursor.skipSpace()
  if (cursor.next === '/') throw cursor.fail(`a step needs a range, as in ${low}-99/2`)
  if (cursor.next !== '-') return { text: low, low: Number(low), high: Number(low), step: 1, width: low.length }
  cursor.at++
  cursor.skipSpace()
  const high = readNumber(cursor, `the end of the range ${low}-`)
  const text = `${low}-${high}`
  if (low.length !== high.length && (isPadded(low) || isPadded(high))) {
    const width = Math.max(low.length, high.length)
    const padded = `${low.padStart(width, '0')}-${high.padStart(width, '0')}`
    const zeros = 'with zeros in front both ends need the same length'
    throw cursor.fail(`${text} goes from ${low.length} to ${high.length} digits; ${zeros}, as in ${padded}`, at)
  }
  if (Number(low) > Number(high)) throw cursor.fail(`the range ${text} runs backwards, write ${high}-${low}`, at)
  const step = readStep(cursor)
  return { text, low: Number(low), high: Number(high), step, width: low.length }
}

function readStep(cursor: Cursor): number {
  cursor.skipSpace()
  if (cursor.next !== '/') return 1
  cursor.at++
  cursor.skipSpace()
  const at = cursor.at
  const step = Number(readNumber(cursor, 'the step'))
  if (step === 0) throw cursor.fail('the step is 0, it must be at least 1', at)
  return step
}

function readNumber(cursor: Cursor, what: string): string {
  const at = cursor.at
  const digits = cursor.take(/\d+/y)
  if (digits === '') throw cursor.fail(`expected ${what}, found ${shown(cursor.next)}`)
  if (digits.length > maxDigits) throw cursor.fail(`${digits} has more than ${maxDigits} digits`, at)
  return digits
}

const isPadded = (digits: string): boolean => digits.length > 1 && digits.startsWith('0')

/** The numbers of each length lie together: 8-11 is 8-9 and 10-11. */
function addSpans(spans: Span[], { low, high, step, width }: Range): void {
  let value = low
  for (let digits = width; value <= high; digits++) {
    const top = Math.min(high, 10 ** digits - 1)
    if (step === 1) {
      spans.push({ first: codeOf(digits, value), last: codeOf(digits, top) })
      value = top + 1
    }
    for (; value <= top; value += step) {
      const code = codeOf(digits, value)
      spans.push({ first: code, last: code })
    }
  }
}
