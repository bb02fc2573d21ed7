import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterKey, afterPrefix, compareBytewise } from './keys.ts'

const text = fc.string({ unit: 'binary' })

describe('the text after a prefix', () => {
  it.each([
    ['node/', 'node0'],
    ['a', 'b'],
    ['é', 'ê'],
    ['a\u{d7ff}', 'a\u{e000}'], // surrogates are no characters
    ['a\u{ffff}', 'a\u{10000}'],
    ['a\u{10ffff}\u{10ffff}', 'b'],
    ['', undefined],
    ['\u{10ffff}', undefined],
  ])('%j → %j', (prefix, expected) => {
    expect(afterPrefix(prefix)).toBe(expected)
  })

  it('comes after everything that starts with the prefix, and before everything else that comes after the prefix', () => {
    fc.assert(
      fc.property(text, text, (prefix, other) => {
        const end = afterPrefix(prefix)
        const within = (key: string): boolean =>
          compareBytewise(prefix, key) <= 0 && (end === undefined || compareBytewise(key, end) < 0)
        expect(within(prefix + other)).toBe(true)
        expect(within(other)).toBe(other.startsWith(prefix))
      }),
    )
  })
})

it('nothing lies between a key and the text after it', () => {
  fc.assert(
    fc.property(text, text, (key, other) => {
      expect(compareBytewise(other, key) > 0).toBe(compareBytewise(other, afterKey(key)) >= 0)
    }),
  )
})
