import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cutStably } from './stable-cut.ts'

const items = (...sizes: readonly number[]) => sizes.map((size, position) => ({ path: `f${position}`, size }))
const sizes = (groups: readonly (readonly { readonly size: number }[])[]) =>
  groups.map(group => group.map(({ size }) => size))

const LIMITS = { min: 50, max: 100 }

test.each([
  ['nothing', [], []],
  ['what fits', [10, 20, 70], [[10, 20, 70]]],
  ['one too large', [101], [[101]]],
  ['one too large among others', [10, 101, 10], [[10], [101], [10]]],
  ['where the next does not fit', [40, 70, 70], [[40], [70], [70]]],
])('%s', (_, given, expected) => {
  expect(sizes(cutStably(items(...given), LIMITS))).toEqual(expected)
})

describe('whatever it is given', () => {
  const anyItems = fc.array(fc.record({ path: fc.string({ maxLength: 5 }), size: fc.nat(120) }), { maxLength: 60 })

  test('all of it is in the groups, in order', () => {
    fc.assert(
      fc.property(anyItems, given => {
        expect(cutStably(given, LIMITS).flat()).toEqual(given)
      }),
    )
  })

  test('no group is too large unless it is a single item, none is empty', () => {
    fc.assert(
      fc.property(anyItems, given => {
        for (const group of cutStably(given, LIMITS)) {
          const bytes = group.reduce((sum, { size }) => sum + size, 0)
          expect(group.length === 1 || (group.length > 1 && bytes <= LIMITS.max)).toBe(true)
        }
      }),
    )
  })
})

test('a change moves few cuts', () => {
  const given = Array.from({ length: 2000 }, (_, n) => ({ path: `dir/file-${n}`, size: 1 + ((n * 7919) % 20) }))
  const before = new Set(cutStably(given, LIMITS).map(group => JSON.stringify(group)))
  const changes = Array.from({ length: 100 }, (_, n) => {
    const changed = given.with(n * 20, { path: `dir/file-${n * 20}`, size: 30 })
    return cutStably(changed, LIMITS).filter(group => !before.has(JSON.stringify(group))).length
  })
  expect(Math.max(...changes)).toBeLessThanOrEqual(8)
  expect(changes.reduce((sum, count) => sum + count) / changes.length).toBeLessThan(2.5)
})
