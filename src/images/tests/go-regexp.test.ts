import { describe, expect, test } from 'vitest'
import { firstMatch, goRegExp } from './go-regexp.ts'

const found = (source: string, text: string): boolean => goRegExp(source).test(text)

describe("Go's regular expressions", () => {
  test.each([
    ['^ssh', 'sshd', true],
    ['(?i)SSH', 'sshd', true],
    ['(?is)a.b', 'A\nB', true],
    ['(?i:S)sh', 'ssh', true],
    ['(?i:S)SH', 'ssh', false],
    ['^[[:digit:]]+$', '2026', true],
    ['^[^[:space:]]+$', 'a b', false],
    ['^[[:alpha:]_-]+$', 'a_b-c', true],
    ['[]x]', ']', true],
    ['(?P<year>\\d{4})-(?P<month>\\d\\d)', '2026-11', true],
    ['\\Aab\\z', 'ab', true],
    ['(?m)\\Ab', 'a\nb', false],
    ['(?m)^b', 'a\nb', true],
    ['\\Qa.b\\E$', 'a.b', true],
    ['\\Qa.b\\E$', 'axb', false],
    ['{x}', '{x}', true],
    ['a{2}', 'aa', true],
    ['\\"\\-\\_', '"-_', true],
    ['[\\w.\\-]+@', 'a.b-c@', true],
    ['\\pL\\x{e9}', 'aé', true],
    ['a/b', 'a/b', true],
  ])('%s on %j: %s', (source, text, expected) => {
    expect(found(source, text)).toBe(expected)
  })

  test.each([
    ['(', 'Unterminated group'],
    ['a**', 'Nothing to repeat'],
    ['[z-a]', 'Range out of order in character class'],
    ['[[:letters:]]', '[:letters:] is not a class of characters'],
    ['(?U)a', 'the flags (?U) are not known: i, m and s are'],
    ['a(?i)b', 'Invalid group'],
  ])('%s is refused: %s', (source, message) => {
    expect(() => goRegExp(source)).toThrow(message)
  })
})

describe('finding a line', () => {
  test('tells which', () => {
    expect(firstMatch(/b/, ['a', 'ab', 'b'])).toBe(1)
    expect(firstMatch(/x/, ['a', 'ab', 'b'])).toBe(-1)
  })

  test('gives up on an expression that would take years', () => {
    expect(firstMatch(/^(a+)+$/, [`${'a'.repeat(60)}!`])).toBeUndefined()
  })
})
