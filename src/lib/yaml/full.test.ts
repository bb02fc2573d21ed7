import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { readFast } from './fast.ts'
import { readFull } from './full.ts'
import { readYaml } from './read.ts'
import { ORDINARY, plain, show } from './test-support.ts'

describe('gives the values the yaml package gives', () => {
  test.each(Object.entries(ORDINARY))('%s', (_, text) => {
    const values: unknown = parse(text, { mapAsMap: true, logLevel: 'error', stringKeys: true })
    expect(plain(readFull(text).tree)).toEqual(values ?? new Map())
  })
})

describe('reads what the fast reader leaves', () => {
  const cases: [string, string, string[]][] = [
    ['Windows line ends', 'a: 1\r\nb: x\r\n', ['1:1 map', '  1:1 a = 1:4 1', '  2:1 b = 2:4 "x"']],
    [
      'scalars of several lines',
      'a: b\n  c\nd: "e\n\n  f"\n',
      ['1:1 map', '  1:1 a = 1:4 "b c"', '  3:1 d = 3:4 "e\\nf"'],
    ],
    ['folded text', 'a: >-\n  b\n  c\n', ['1:1 map', '  1:1 a = 1:4 "b c"']],
    ['explicit keys', '? a\n: b\n', ['1:1 map', '  1:3 a = 2:3 "b"']],
    ['braces without values', '{ a, b: }\n', ['1:1 map', '  1:3 a = 1:3 null', '  1:6 b = 1:9 null']],
    ['pairs in brackets', '[a: 1]\n', ['1:1 list', '  1:2 map', '    1:2 a = 1:5 1']],
    [
      'keys by their text',
      '1: a\n0x1: b\ntrue: c\n~: d\n',
      ['1:1 map', '  1:1 1 = 1:4 "a"', '  2:1 0x1 = 2:6 "b"', '  3:1 true = 3:7 "c"', '  4:1 ~ = 4:4 "d"'],
    ],
    [
      '!age of anything plain is a string',
      'a: !age 12\nb: !age\n',
      ['1:1 map', '  1:1 a = 1:9 !age "12"', '  2:1 b = 2:8 !age ""'],
    ],
    ['a scalar alone', '~\n', ['1:1 null']],
    ['a document end', 'a: 1\n...\n', ['1:1 map', '  1:1 a = 1:4 1']],
    ['no YAML 1.1, whatever the file says', '%YAML 1.1\n---\na: yes\n', ['3:1 map', '  3:1 a = 3:4 "yes"']],
    ['nothing', '---\n# nothing\n...\n', []],
  ]
  test.each(cases)('%s', (_, text, expected) => {
    expect(show(readYaml(text))).toEqual(expected)
  })
})

describe('names every problem with its line and column', () => {
  const anchors = 'problem: anchors and aliases are not used in site files; put shared values into a group'
  const cases: [string, string, string[]][] = [
    [
      'a duplicate key',
      'a: 1\nb: { c: 1, c: 2 }\na: 2\n',
      ['2:12 problem: the key "c" is already on line 2', '3:1 problem: the key "a" is already on line 1'],
    ],
    ['a key that is a duplicate by its text', '1: a\n"1": b\n', ['2:1 problem: the key "1" is already on line 1']],
    ['an anchor', 'a: &x 1\n', [`1:7 ${anchors}`]],
    [
      'anchors on a map, a list and a key',
      'a: &x\n  b: 1\nc: &y [d]\n&z e: 1\n',
      [`2:3 ${anchors}`, `3:7 ${anchors}`, `4:4 ${anchors}`],
    ],
    ['an alias', 'a: &x 1\nb: *x\n', [`1:7 ${anchors}`, `2:4 ${anchors}`]],
    ['an alias as a key', 'a: &x 1\n*x : 2\n', [`1:7 ${anchors}`, `2:1 ${anchors}`]],
    [
      'a merge key',
      'a:\n  <<: { b: 1 }\n',
      ['2:3 problem: merge keys (<<) are not used in site files; put shared values into a group'],
    ],
    [
      'several documents',
      'a: 1\n---\nb: 1\n',
      ['2:1 problem: a file holds one YAML document; put what follows into a file of its own'],
    ],
    ['a list as a key', '[a]: 1\n', ['1:1 problem: a key is a single word or string, not a map or a list']],
    ['a tagged key', '!age a: 1\n', ['1:6 problem: a key has no tag']],
    [
      'another tag',
      'a: !vault x\nb: !!str 1\n',
      [
        '1:11 problem: the tag !vault is not known; only !age is',
        '2:10 problem: the tag !!str is not known; only !age is',
      ],
    ],
    [
      'a tag that makes something else',
      'a: !!binary aGk=\n',
      ['1:13 problem: the tag !!binary is not known; only !age is'],
    ],
    ['!age on a map', 'a: !age { b: 1 }\n', ['1:9 problem: !age marks a string, not a map or a list']],
    ['65 levels', `${'['.repeat(65)}${']'.repeat(65)}\n`, ['1:65 problem: is nested more than 64 levels deep']],
    [
      'an open bracket',
      'a: [b\nc: d\n',
      ['2:1 problem: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
    ['an open quote', 'a: "b\n', ['2:1 problem: Missing closing "quote']],
    ['a tab', 'a:\n\tb: 1\n', ['2:1 problem: Tabs are not allowed as indentation']],
    ['a map on the line of a key', 'a: b: c\n', ['1:4 problem: Nested mappings are not allowed in compact mappings']],
  ]
  test.each(cases)('%s', (_, text, expected) => {
    expect(readFast(text)).toBeUndefined()
    expect(show(readYaml(text))).toEqual(expected)
  })

  test('each message is one line', () => {
    for (const text of ['a: [b\n', 'a: "\n b\n', '{\n', 'a\nb: c\n  d: e\n- f\n', '%x\na', '@', '`'])
      for (const { message, line, column } of readFull(text).problems) {
        expect(message).not.toMatch(/\n|\^|at line/)
        expect([line > 0, column > 0]).toEqual([true, true])
      }
  })

  test('64 levels are no problem', () => {
    const text = `${'['.repeat(64)}${']'.repeat(64)}\n`
    expect(readFull(text).problems).toEqual([])
    expect(readFast(text)).toEqual(readFull(text))
  })

  test('a bomb of brackets is a problem like any other', () => {
    expect(readYaml('['.repeat(10_000)).problems[0]?.message).toBe('is nested more than 64 levels deep')
    expect(readYaml('a: '.repeat(5000)).problems.length).toBeGreaterThan(0)
    expect(readYaml('- '.repeat(10_000)).problems[0]?.message).toBe('is nested more than 64 levels deep')
  })
})
