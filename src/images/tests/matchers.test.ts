import { describe, expect, test } from 'vitest'
import { Output } from './found.ts'
import { judge } from './matchers.ts'

const holds = (expected: unknown, found: unknown): boolean => judge(expected, found).ok

describe('a plain value is compared', () => {
  test.each<[unknown, unknown, boolean]>([
    [true, true, true],
    [true, false, false],
    [true, 'true', false],
    ['0644', '0644', true],
    ['0644', '0755', false],
    ['55', 55, true],
    [55, '55', true],
    [42, 42.0, true],
    [42, '42.0', true],
    [42, 'forty-two', false],
    [1, true, false],
    ['a', undefined, false],
    ['1.2', ['1.2'], true],
    ['hello', new Output('hello\n'), true],
    ['hello\n', new Output('hello\n'), true],
    ['hello', new Output('hello\nworld\n'), false],
    [3, new Output('3\n'), true],
  ])('%j with %j: %s', (expected, found, ok) => {
    expect(holds(expected, found)).toBe(ok)
  })
})

describe('a list', () => {
  test.each<[unknown, unknown, boolean]>([
    [['a', 'b'], ['b', 'c', 'a'], true],
    [['a', 'b', 'b'], ['a', 'b', 'c'], false],
    [['a', 'b', 'b'], ['b', 'a', 'b'], true],
    [['a'], [], false],
    [[], [], true],
    [[2], ['1', '2'], true],
    [['a'], 'a', true],
    // The first takes what only the second could have had, and makes room again.
    [[{ 'have-prefix': 'a' }, 'ab'], ['ab', 'ac'], true],
    [[{ 'have-prefix': 'a' }, 'ab'], ['ab', 'bc'], false],
    [[{ gt: 3 }], ['x', 5], true],
  ])('%j among %j: %s', (expected, found, ok) => {
    expect(holds(expected, found)).toBe(ok)
  })
})

describe('patterns on output', () => {
  const output = new Output('first line\nsecond: 42\r\n!third\n/etc/passwd\n')
  test.each<[readonly unknown[], boolean]>([
    [['line', 'second'], true],
    [['fourth'], false],
    [['!fourth'], true],
    [['!second'], false],
    [['/^second: \\d+$/'], true],
    [['/^\\d+/'], false],
    [['!/^\\d+/'], true],
    [['!/^[sx]ec/'], false],
    [['\\!third'], true],
    [['\\!fourth'], false],
    [['/etc/passwd'], true],
    [['\\/etc/'], true],
    [[42], true],
    [['first line second'], false],
    [[''], true],
    [[], true],
  ])('%j: %s', (patterns, ok) => {
    expect(holds(patterns, output)).toBe(ok)
  })

  test('of a failure one sees the patterns that fail, and the line that should not be there', () => {
    expect(judge(['first', '!second', 'fourth'], output)).toEqual({
      ok: false,
      expected: '["!second", "fourth"]',
      found: '"second: 42"',
    })
    expect(judge(['fourth'], new Output('a\nb\n'))).toEqual({
      ok: false,
      expected: '["fourth"]',
      found: String.raw`"a\nb\n"`,
    })
  })

  test('nothing is wanted of empty output but what is not there', () => {
    expect(holds(['!error', ''], new Output(''))).toBe(true)
    expect(holds(['error'], new Output(''))).toBe(false)
  })

  test('what is longer than a check looks at never passes for what might be in the rest', () => {
    const long = new Output(`start\n${'x'.repeat(2 ** 20)}`)
    expect(holds(['start'], long)).toBe(true)
    expect(judge(['!absent'], long)).toEqual({
      ok: false,
      expected: '["!absent"]',
      found: '"not in the first MiB, and there is more"',
    })
    expect(holds({ not: { 'contain-substring': 'absent' } }, long)).toBe(false)
  })

  test('an expression that takes years fails, also where it should not match', () => {
    expect(judge(['!/^(a+)+$/'], new Output(`${'a'.repeat(60)}!`))).toEqual({
      ok: false,
      expected: '["!/^(a+)+$/"]',
      found: '"the expression takes too long"',
    })
  })
})

describe('matchers', () => {
  const versions = ['1.0.1', '1.9.9']
  const json = '{"foo": "bar", "moo": {"nested": "cow"}, "count": "15", "list": [{"a": 1}, {"a": 2}], "a.b": true}'
  test.each<[unknown, unknown, boolean]>([
    [{ 'have-prefix': '4' }, 42, true],
    [{ 'have-prefix': '2' }, 42, false],
    [{ 'have-suffix': '2' }, 42, true],
    [{ 'contain-substring': 'lo w' }, new Output('hello world\n'), true],
    [{ 'match-regexp': '^\\d{2}$' }, 42, true],
    [{ 'match-regexp': 'x' }, 42, false],
    [{ gt: 100 }, '128', true],
    [{ gt: 128 }, '128', false],
    [{ ge: 128 }, 128, true],
    [{ lt: 95 }, 20, true],
    [{ le: 19.5 }, 20, false],
    [{ lt: 95 }, 'much', false],
    [{ 'contain-element': { 'have-prefix': 'b' } }, ['foo', 'bar'], true],
    [{ 'contain-element': 'second' }, new Output('first\nsecond\n'), true],
    [{ 'contain-element': 'sec' }, new Output('first\nsecond\n'), false],
    [{ 'contain-elements': ['foo', 'bar'] }, ['foo', 'bar', 'moo'], true],
    [{ 'consist-of': ['foo', { 'have-prefix': 'm' }, 'bar'] }, ['foo', 'bar', 'moo'], true],
    [{ 'consist-of': ['foo', 'bar'] }, ['foo', 'bar', 'moo'], false],
    [{ equal: ['foo', 'bar'] }, ['foo', 'bar'], true],
    [{ equal: ['bar', 'foo'] }, ['foo', 'bar'], false],
    [{ equal: 15 }, '15', false],
    [{ equal: '15' }, '15', true],
    [{ 'have-len': 3 }, ['a', 'b', 'c'], true],
    [{ 'have-len': 3 }, 'aé', true],
    [{ 'have-len': 1 }, { a: 1 }, true],
    [{ 'have-key': 'baz' }, { foo: 1, baz: 2 }, true],
    [{ 'have-key': { 'have-prefix': 'q' } }, { foo: 1, baz: 2 }, false],
    [{ 'have-key': 'toString' }, {}, false],
    [{ 'have-key-with-value': { foo: { lt: 2 } } }, { foo: 1 }, true],
    [{ 'have-key-with-value': { foo: 2 } }, { foo: 1 }, false],
    [{ 'have-patterns': ['/b$/', '!x'] }, 'a\nab', true],
    [{ not: 'a' }, 'b', true],
    [{ not: { not: 'a' } }, 'b', false],
    [{ and: [{ gt: 1 }, { lt: 3 }] }, 2, true],
    [{ and: [{ gt: 1 }, { lt: 3 }] }, 3, false],
    [{ or: ['a', 'b'] }, 'b', true],
    [{ or: [{ gt: 1 }, 'b'] }, 'b', true],
    [{ or: ['a', 'b'] }, 'c', false],
    [{ 'semver-constraint': '>1.0.0 <2.0.0 !=1.5.0' }, versions, true],
    [{ not: { 'semver-constraint': '>1.0.0 <2.0.0 !=1.5.0' } }, [...versions, '1.5.0'], true],
    [{ 'semver-constraint': '>1.0.0' }, ['yesterday'], false],
    [{ not: { 'semver-constraint': '>1.0.0' } }, ['yesterday'], false],
    [{ 'semver-constraint': '>1.0.0' }, [], false],
    [{ gjson: { 'moo.nested': 'cow', foo: { 'have-prefix': 'b' }, count: { le: 25 } } }, new Output(json), true],
    [{ gjson: { '@this': { 'have-key': 'foo' }, 'list.#': 2, 'list.1.a': 2, 'list.#.a': [1, 2] } }, json, true],
    [{ gjson: { 'a\\.b': true } }, json, true],
    [{ gjson: { 'moo.absent': { not: 'cow' } } }, json, false],
    [{ gjson: { foo: 'bar' } }, 'no json', false],
  ])('%j on %j: %s', (expected, found, ok) => {
    expect(holds(expected, found)).toBe(ok)
  })

  test('what can say nothing fails, also where the opposite is wanted', () => {
    expect(judge({ not: { gt: 3 } }, 'abc')).toEqual({
      ok: false,
      expected: '{"not":{"gt":3}}',
      found: '"abc": is no number',
    })
  })
})

test('texts are for people: at most 200 characters', () => {
  const { expected, found } = judge('a'.repeat(500), new Output('b'.repeat(500)))
  expect([expected.length, found.length]).toEqual([200, 200])
  expect(expected.endsWith('a…')).toBe(true)
})
