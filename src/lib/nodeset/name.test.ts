import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareNames, numbersOf, readName, whyNoName } from './name.ts'

test.each([
  ['login', 'login', []],
  ['n1', 'n#', [1]],
  ['n01', 'n#', [11]],
  ['r1n05-ib', 'r#n#-ib', [1, 15]],
  ['n1-ib0', 'n#-ib#', [1, 0]],
  ['x1000c0s0b0n0', 'x#c#s#b#n#', [2110, 0, 0, 0, 0]],
  ['7', '#', [7]],
  ['10.0.0.1', '#.#.#.#', [20, 0, 0, 1]],
  ['a_b-c.d', 'a_b-c.d', []],
  ['n999999999999999', 'n#', [1_111_111_111_111_109]],
])('%s is the pattern %s', (name, pattern, codes) => {
  const read: number[] = []
  expect(readName(name, read)).toBe(pattern)
  expect(read).toEqual(codes)
})

test.each([
  ['', 'a node name is empty'],
  ['n 1', '"n 1" has " ", which no node name may have'],
  ['n[1-2]', '"n[1-2]" has "[", which no node name may have'],
  ['n#', '"n#" has "#", which no node name may have'],
  ['n1\n', String.raw`"n1\n" has "\n", which no node name may have`],
  ['knöten', '"knöten" has "ö", which no node name may have'],
  ['n🚀', '"n🚀" has "🚀", which no node name may have'],
  ['-n1', 'the name -n1 begins with -'],
  ['n1234567890123456', 'n1234567890123456 has a number of more than 15 digits'],
])('%j is no name', (name, why) => {
  expect(readName(name, [])).toBeUndefined()
  expect(whyNoName(name)).toBe(why)
})

test.each([
  ['r1n05', [1, 5]],
  ['login', []],
  ['n000', [0]],
  ['x1000c0s0b0n0', [1000, 0, 0, 0, 0]],
  ['n999999999999999', [999_999_999_999_999]],
])('the numbers of %s are %j', (name, numbers) => {
  expect(numbersOf(name)).toEqual(numbers)
})

test('numbers that could be inexact are refused', () => {
  expect(() => numbersOf('n9007199254740993')).toThrow('more than 15 digits')
})

test('names sort by pattern, then by number, shorter numbers first', () => {
  const sorted = [
    '2',
    '10',
    'N1',
    'a1b1',
    'a1b10',
    'a2b1',
    'login',
    'n',
    'n1',
    'n2',
    'n9',
    'n01',
    'n09',
    'n10',
    'n010',
    'n100',
    'n1-ib',
    'n10-ib',
    'n1-ib0',
    'n1.x',
    'nx1',
  ]
  expect(sorted.toReversed().sort(compareNames)).toEqual(sorted)
})

test('the order is total, of any strings', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[n0-2#-]{0,5}$/))
  fc.assert(
    fc.property(text, text, text, (a, b, c) => {
      expect(Math.sign(compareNames(a, b)) + Math.sign(compareNames(b, a))).toBe(0)
      expect(compareNames(a, b) === 0).toBe(a === b)
      const [x = '', y = '', z = ''] = [a, b, c].sort(compareNames)
      expect([compareNames(x, y) <= 0, compareNames(y, z) <= 0, compareNames(x, z) <= 0]).toEqual([true, true, true])
    }),
    { numRuns: 1000 },
  )
})
