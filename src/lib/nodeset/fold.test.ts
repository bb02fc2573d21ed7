/**
 * The expectations agree with ClusterShell 1.9.1 (nodeset -f), compared on 3,000 random sets too: sets with one number in
 * each name fold to the very same text. With several numbers the rectangles may differ, and ours come in natural order
 * where ClusterShell puts the largest first.
 */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { fold, parseNodeSet } from './index.ts'
import { anyNames } from './testing.ts'

test.each([
  ['', ''],
  ['login', 'login'],
  ['n1', 'n1'],
  ['n3 n1 n2', 'n[1-3]'],
  ['n1 n2 n4 n6 n7', 'n[1-2,4,6-7]'],
  ['n1 n1 n1', 'n1'],
  // No steps: 1-9/2 is read, not written.
  ['n1 n3 n5 n7 n9', 'n[1,3,5,7,9]'],
  // Zeros in front belong to the name.
  ['n8 n9 n10', 'n[8-10]'],
  ['n09 n10 n11', 'n[09-11]'],
  ['n1 n01 n02', 'n[1,01-02]'],
  ['n1 n01 n001', 'n[1,01,001]'],
  ['n9 n10 n09 n010', 'n[9,09-10,010]'],
  ['n0 n00 n000', 'n[0,00,000]'],
  ['n99 n100 n101', 'n[99-101]'],
  ['n099 n100 n101', 'n[099-101]'],
  ['n098 n099 n100 n0999 n1000', 'n[098-100,0999-1000]'],
  ['n98 n99 n000 n001', 'n[98-99,000-001]'],
  ['n05 n06 n99 n100', 'n[05-06,99-100]'],
  ['n9 n10 n99 n100 n999 n1000', 'n[9-10,99-100,999-1000]'],
  // Text before, after and between.
  ['n1-ib n2-ib n3-ib', 'n[1-3]-ib'],
  ['n1-ib0 n2-ib0', 'n[1-2]-ib0'],
  ['1 2 10', '[1-2,10]'],
  ['n1.a.org n2.a.org', 'n[1-2].a.org'],
  ['gpu2 login n1 gpu1 n2 n1-ib', 'gpu[1-2],login,n[1-2],n1-ib'],
  // Several numbers.
  ['r1n1 r1n2 r2n1 r2n2', 'r[1-2]n[1-2]'],
  ['r1n1 r1n2 r2n1', 'r1n[1-2],r2n1'],
  ['r1n1 r2n1 r2n2 r3n1', 'r[1,3]n1,r2n[1-2]'],
  ['r1n01 r1n02 r2n01 r2n02', 'r[1-2]n[01-02]'],
  ['r9n1 r10n1 r11n1', 'r[9-11]n1'],
  ['r1n1 r3n1 r1n3 r3n3', 'r[1,3]n[1,3]'],
  ['x1000c0s0b0n0', 'x1000c0s0b0n0'],
  ['x1000c0s0b0n0 x1000c0s0b0n1 x1000c0s0b1n0 x1000c0s0b1n1', 'x1000c0s0b[0-1]n[0-1]'],
  // Rectangles that have a partner only in part.
  ['r1a1c1 r1a1c2 r2a1c1 r2a1c2 r1a2c3 r2a3c4', 'r[1-2]a1c[1-2],r1a2c3,r2a3c4'],
])('%s → %s', (names, folded) => {
  expect(fold(names.split(' ').filter(Boolean))).toBe(folded)
})

test('names that are no names are refused', () => {
  expect(() => fold(['n1', 'n[1-2]'])).toThrow('"n[1-2]" has "[", which no node name may have')
})

test('folded and read again are the same names', () => {
  fc.assert(
    fc.property(anyNames, names => {
      expect(new Set(parseNodeSet(fold(names)))).toEqual(new Set(names))
    }),
    { numRuns: 2000 },
  )
})

test('the same names in another order, or repeated, fold the same', () => {
  const reordered = anyNames.chain(names => fc.tuple(fc.constant(names), fc.shuffledSubarray(names), fc.nat()))
  fc.assert(
    fc.property(reordered, ([names, some, turn]) => {
      const at = names.length === 0 ? 0 : turn % names.length
      expect(fold([...some, ...names.slice(at), ...names.slice(0, at)])).toBe(fold(names))
    }),
  )
})

// Generous limits for slow machines; they still fail if the time grows with the square of the number of names.
test.each([
  ['n[000001-100000]', 'n[000001-100000]'],
  ['r[1-200]n[1-500]', 'r[1-200]n[1-500]'],
  ['x[1000-1015]c[0-7]s[0-7]b[0-1]n[0-47]', 'x[1000-1015]c[0-7]s[0-7]b[0-1]n[0-47]'],
])('a hundred thousand names fold: %s', (text, folded) => {
  const names = scattered([...parseNodeSet(text)])
  expect(fold(names)).toBe(folded)
})

test('a grid with every third node missing folds', () => {
  const names = scattered([...parseNodeSet('r[1-200]n[1-500]')]).filter((_, i) => i % 3 !== 0)
  const folded = fold(names)
  expect(parseNodeSet(folded).size).toBe(names.length)
})

/** Out of order, the same way each time: 7,919 is a prime that divides none of the counts. */
const scattered = (names: readonly string[]): string[] => names.map((_, i) => names[(i * 7919) % names.length] ?? '')
