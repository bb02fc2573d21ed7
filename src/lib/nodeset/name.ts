/**
 * A node's name is a pattern and the numbers in it: 'r1n05-ib' is the pattern 'r#n#-ib' with the digits '1' and '05'.
 *
 *   numbersOf('r1n05')            → [1, 5]
 *   ['n10', 'n2', 'n1-ib', 'n1']  sorts as n1, n2, n10, n1-ib: first by pattern, then by its numbers from the left.
 */
import { MusterError } from '../errors.ts'
import { maxDigits } from './digits.ts'

/** Stands for the digits in a pattern: no name may hold it, and it sorts before all that a name may hold. */
export const hole = '#'

const wholeName = /^\w[\w.-]*$/
const zero = 48

const isDigit = (character: number): boolean => character >= zero && character <= zero + 9

/**
 * The pattern of a name; the codes of its digits (see digits.ts) are appended to `codes`. Undefined if it cannot be a name.
 * Everything that takes many names spends its time here, so it looks at each character once and makes no arrays.
 */
export function readName(name: string, codes: number[]): string | undefined {
  if (!wholeName.test(name)) return undefined
  let pattern = ''
  let textFrom = 0
  for (let at = 0; at < name.length; at++) {
    if (!isDigit(name.charCodeAt(at))) continue
    const digitsFrom = at
    let code = name.charCodeAt(at) - zero
    for (at++; at < name.length && isDigit(name.charCodeAt(at)); at++) {
      code = code * 10 + 10 + name.charCodeAt(at) - zero
    }
    if (at - digitsFrom > maxDigits) return undefined
    codes.push(code)
    pattern += name.slice(textFrom, digitsFrom) + hole
    textFrom = at
  }
  return pattern + name.slice(textFrom)
}

/** What is wrong with a name that `readName` refused. */
export function whyNoName(name: string): string {
  if (name === '') return 'a node name is empty'
  const stranger = /[^\w.-]/u.exec(name)
  if (stranger) return `${JSON.stringify(name)} has ${JSON.stringify(stranger[0])}, which no node name may have`
  if (/^[.-]/.test(name)) return `the name ${name} begins with ${name[0]}`
  return `${name} has a number of more than ${maxDigits} digits`
}

export function numbersOf(name: string): readonly number[] {
  const digits = name.match(/\d+/g) ?? []
  if (digits.some(each => each.length > maxDigits)) throw new MusterError('NODESET_INVALID', whyNoName(name))
  return digits.map(Number)
}

/** The natural order of names, used everywhere. A total order, of strings that are no names too. */
export function compareNames(a: string, b: string): number {
  let byNumbers = 0
  let i = 0
  let j = 0
  while (i < a.length && j < b.length) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(j)
    if (isDigit(x) && isDigit(y)) {
      const endOfX = afterDigits(a, i)
      const endOfY = afterDigits(b, j)
      byNumbers ||= endOfX - i - (endOfY - j) || compareDigits(a, i, b, j, endOfX - i)
      i = endOfX
      j = endOfY
    } else if (x === y) {
      i++
      j++
    } else {
      // Digits come before any other character, as the hole of a pattern does.
      return isDigit(x) ? -1 : isDigit(y) ? 1 : x - y
    }
  }
  return a.length - i - (b.length - j) || byNumbers
}

function afterDigits(text: string, from: number): number {
  let at = from
  while (at < text.length && isDigit(text.charCodeAt(at))) at++
  return at
}

/** Of two equally long strings of digits the first difference decides. */
function compareDigits(a: string, i: number, b: string, j: number, length: number): number {
  for (let at = 0; at < length; at++) {
    const order = a.charCodeAt(i + at) - b.charCodeAt(j + at)
    if (order !== 0) return order
  }
  return 0
}

/** By character code: the same on every machine, unlike a locale's order. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
