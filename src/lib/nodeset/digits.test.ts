import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { codeOf, codeOfDigits, countOf, digitsOf, joinDigits, maxDigits, runsOf, tidy, widest } from './digits.ts'

test.each([
  ['0', 0],
  ['9', 9],
  ['00', 10],
  ['09', 19],
  ['10', 20],
  ['99', 109],
  ['000', 110],
  ['100', 210],
  ['0000', 1110],
  ['0'.repeat(15), 111_111_111_111_110],
  ['9'.repeat(15), 1_111_111_111_111_109],
])('%s has the code %i', (digits, code) => {
  expect(codeOfDigits(digits)).toBe(code)
})

test('every code is one string of digits, and no two are the same', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^\d{1,15}$/), digits => {
      const code = codeOfDigits(digits)
      expect(Number.isSafeInteger(code)).toBe(true)
      const [run, ...others] = runsOf({ first: code, last: code })
      expect(others).toEqual([])
      expect(run).toEqual({ width: digits.length, low: Number(digits), high: Number(digits) })
      expect(digitsOf(digits.length, Number(digits))).toBe(digits)
    }),
  )
})

test('one digit longer than allowed the codes would be inexact', () => {
  expect(Number.isSafeInteger(codeOf(maxDigits, 10 ** maxDigits - 1))).toBe(true)
  expect(Number.isSafeInteger(codeOf(maxDigits + 1, 10 ** (maxDigits + 1) - 1))).toBe(false)
})

test('a span is taken apart by length', () => {
  expect(runsOf({ first: 8, last: 20 })).toEqual([
    { width: 1, low: 8, high: 9 },
    { width: 2, low: 0, high: 10 },
  ])
  expect(runsOf({ first: 109, last: 1110 })).toEqual([
    { width: 2, low: 99, high: 99 },
    { width: 3, low: 0, high: 999 },
    { width: 4, low: 0, high: 0 },
  ])
})

test('spans are put in order and united', () => {
  const spans = [
    { first: 5, last: 6 },
    { first: 1, last: 2 },
    { first: 9, last: 9 },
    { first: 2, last: 4 },
  ]
  expect(tidy(spans)).toEqual([
    { first: 1, last: 6 },
    { first: 9, last: 9 },
  ])
  expect(countOf(tidy(spans))).toBe(7)
  expect(tidy([])).toEqual([])
})

const just = (...strings: string[]) => tidy(strings.map(codeOfDigits).map(code => ({ first: code, last: code })))

test('digits joined are the digits written one after the other', () => {
  expect(joinDigits(just('5'), just('1', '2', '3'))).toEqual(just('51', '52', '53'))
  expect(joinDigits(just('8', '9', '10'), just('5'))).toEqual(just('85', '95', '105'))
  expect(joinDigits(just('0', '00'), just('0', '00'))).toEqual(just('00', '000', '0000'))
  const digits = fc.array(fc.stringMatching(/^\d{1,3}$/), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(digits, digits, (left, right) => {
      const written = left.flatMap(a => right.map(b => a + b))
      expect(joinDigits(just(...left), just(...right))).toEqual(just(...written))
    }),
  )
})

test('the widest string', () => {
  expect(widest(just('7', '0012', '99'))).toBe(4)
  expect(widest([])).toBe(0)
})
