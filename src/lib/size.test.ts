import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { humanSize, parseSize } from './size.ts'

test.each([
  [0, '0 B'],
  [1, '1 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [4000, '4.0 kB'],
  [9949, '9.9 kB'],
  [9950, '10 kB'],
  [999_499, '999 kB'],
  [999_500, '1.0 MB'],
  [212_345_678, '212 MB'],
  [1_100_000_000, '1.1 GB'],
  [1_500_000_000_000, '1.5 TB'],
  [2_000_000_000_000_000, '2.0 PB'],
  [7_000_000_000_000_000_000, '7000 PB'],
  [-4000, '-4.0 kB'],
])('%d bytes are %s', (bytes, text) => {
  expect(humanSize(bytes)).toBe(text)
})

test.each([
  ['0', 0],
  ['4096', 4096],
  ['4096 B', 4096],
  ['1.5 GB', 1_500_000_000],
  ['1.1GB', 1_100_000_000],
  ['900M', 900_000_000],
  ['900 m', 900_000_000],
  ['2GiB', 2 * 2 ** 30],
  ['2Gi', 2 * 2 ** 30],
  ['0.5 KiB', 512],
  ['3 kB', 3000],
  ['3K', 3000],
  [' 3 TB ', 3_000_000_000_000],
  [4096, 4096],
  [0, 0],
])('%j is a size', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes)
})

test.each([
  '',
  'GB',
  '1.5',
  '1.5 B',
  '1iB',
  '-1',
  '+1',
  '1,5 GB',
  '1..5 GB',
  '1 GB 2',
  '1  GB',
  '1 GBB',
  '1e9',
  '0x10',
  '99999999 PB',
  -1,
  1.5,
  Number.NaN,
  Infinity,
  2 ** 53,
  null,
  undefined,
  true,
  ['1'],
])('%j is none', value => {
  expect(parseSize(value)).toBeUndefined()
})

test('what is shown can be read again, to the digits shown', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), bytes => {
      const again = parseSize(humanSize(bytes)) ?? Number.NaN
      expect(Math.abs(again - bytes)).toBeLessThanOrEqual(bytes * 0.051)
    }),
  )
})
