/**
 * One word of a node set, before it is said what it means: text and brackets, as a pattern and its tree.
 *
 *   n[001-128]-ib   → pattern 'n#-ib'
 *   r[1-2]n[1-4]    → pattern 'r#n#', eight names
 *   n5[1-3]         → pattern 'n#': digits beside brackets belong to the same number, 51 52 53
 */
import { counted, type Cursor } from './cursor.ts'
import { codeOfDigits, countOf, joinDigits, maxDigits, widest, type Span } from './digits.ts'
import { readBrackets } from './range.ts'
import { hole } from './name.ts'
import { productOf, type Tree } from './tree.ts'

export interface Word {
  readonly pattern: string
  readonly tree: Tree
  readonly size: number
}

/** Reads while there is text of these characters or a bracket; undefined if there is neither. */
export function readWord(cursor: Cursor, characters: RegExp, limit: number): Word | undefined {
  const at = cursor.at
  let pattern = ''
  const numbers: (readonly Span[])[] = []
  const addNumber = (spans: readonly Span[]): void => {
    const before = pattern.endsWith(hole) ? numbers.pop() : undefined
    if (!before) pattern += hole
    else if (widest(before) + widest(spans) > maxDigits) throw tooLong(cursor, at)
    else if (countOf(before) * countOf(spans) > limit)
      throw tooMany(cursor, at, countOf(before) * countOf(spans), limit)
    numbers.push(before ? joinDigits(before, spans) : spans)
  }
  for (;;) {
    const text = cursor.take(characters)
    for (const [chunk] of text.matchAll(/\d+|\D+/g)) {
      if (!/\d/.test(chunk)) pattern += chunk
      else if (chunk.length > maxDigits) throw tooLong(cursor, at)
      else addNumber([{ first: codeOfDigits(chunk), last: codeOfDigits(chunk) }])
    }
    if (cursor.next !== '[') break
    addNumber(readBrackets(cursor, limit))
  }
  if (cursor.at === at) return undefined
  const size = numbers.reduce((size, spans) => size * countOf(spans), 1)
  if (size > limit) throw tooMany(cursor, at, size, limit)
  return { pattern, tree: productOf(numbers), size }
}

const tooLong = (cursor: Cursor, at: number): Error =>
  cursor.fail(`a number in this name has more than ${maxDigits} digits`, at)

const tooMany = (cursor: Cursor, at: number, size: number, limit: number): Error =>
  cursor.fail(`this is ${counted(size)} names, the limit is ${counted(limit)}`, at)
