import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readYaml } from '../lib/yaml/read.ts'
import type { Tree } from '../lib/yaml/tree.ts'
import { format } from './testing.ts'
import { plainOf, splitKey, treeAt, validateTree, validateValue } from './validate.ts'

const read = (text: string): Tree => readYaml(text).tree as Tree
const check = (text: string, schema: z.ZodType): string[] => format(validateTree('f', read(text), schema))

test.each([
  ['args', { name: 'args', appends: false }],
  ['args+', { name: 'args', appends: true }],
  ['a+b', { name: 'a+b', appends: false }],
  ['c++', { name: 'c+', appends: true }],
])('splitKey %s', (key, expected) => {
  expect(splitKey(key)).toEqual(expected)
})

describe('plainOf', () => {
  test('what the file says, as a value', () => {
    const text = 'a: 1\nb: { c: [x, { d: null }], e+: [y] }\ns: !age |\n  AGE\n'
    expect(JSON.stringify(plainOf(read(text)))).toBe(
      '{"a":1,"b":{"c":["x",{"d":null}],"e":["y"]},"s":{"$secret":"AGE\\n"}}',
    )
  })

  test('keys that mean something to JavaScript make no mischief', () => {
    const value = plainOf(read('__proto__: { polluted: 1 }\nconstructor: 2\n'))
    expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor'])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

test.each<[string, string[], string | undefined]>([
  ['a: { b: [x, { c: 1 }] }', ['a', 'b', '1', 'c'], '1:18'],
  ['a: { b+: [x] }', ['a', 'b', '0'], '1:11'],
  ['a: 1', [], '1:1'],
  ['a: 1', ['a', 'b'], undefined],
  ['a: [1]', ['a', '1'], undefined],
  ['a: [1]', ['a', 'x'], undefined],
])('treeAt %s %j', (text, path, expected) => {
  const tree = treeAt(read(text), path)
  expect(tree && `${tree.line}:${tree.column}`).toBe(expected)
})

describe('the place of a problem', () => {
  const schema = z.strictObject({
    name: z.string(),
    list: z.array(z.strictObject({ size: z.int().min(1) })).optional(),
    map: z
      .record(z.string().regex(/^[a-z]+$/, 'is not a key'), z.strictObject({ kind: z.enum(['x', 'y']) }))
      .optional(),
    either: z.union([z.string(), z.strictObject({ to: z.boolean() })]).optional(),
  })
  test.each<[string, string, string[]]>([
    ['all is well', 'name: a\n', []],
    ['a missing key: the map it belongs to', 'either: {}\nname: b\n', ['f:1:1: either.to: is missing']],
    ['a missing key of the file: its beginning', '# a comment\nlist: []\n', ['f:2:1: name: is missing']],
    ['a missing key of an item', 'name: a\nlist:\n- size: 1\n- {}\n', ['f:4:3: list.1.size: is missing']],
    ['a key: the key', 'name: a\nmap:\n  B: { kind: x }\n', ['f:3:3: map.B: is not a key']],
    ['a value: the value', 'name: a\nmap:\n  b: { kind: z }\n', ['f:3:14: map.b.kind: must be one of x, y']],
    [
      'an unknown key: the key',
      'name: a\nmap:\n  b: { kind: x, kin: y }\n',
      ['f:3:17: map.b.kin: unknown key — did you mean kind?'],
    ],
    [
      'an unknown key of an item',
      'name: a\nlist: [{ size: 1, sise: 2 }]\n',
      ['f:2:19: list.0.sise: unknown key — did you mean size?'],
    ],
    ['inside one of several forms', 'name: a\neither: { to: 5 }\n', ['f:2:15: either.to: must be true or false']],
    [
      'an unknown key inside one of several forms',
      'name: a\neither: { to: true, tp: 1 }\n',
      ['f:2:21: either.tp: unknown key — did you mean to?'],
    ],
    ['none of several forms', 'name: a\neither: [1]\n', ['f:2:9: either: must be text']],
    ['an appended list', 'name: a\nlist+: [{ size: 0 }]\n', ['f:2:17: list.0.size: must be at least 1']],
    [
      'several',
      'nmae: a\nmap: 5\n',
      ['f:1:1: name: is missing', 'f:1:1: nmae: unknown key — did you mean name?', 'f:2:6: map: must be a map'],
    ],
  ])('%s', (_, text, expected) => {
    expect(check(text, schema).sort()).toEqual(expected)
  })
})

test.each<[string, z.ZodType, unknown, string]>([
  ['text', z.string(), 5, '5 must be text'],
  ['a number', z.number(), 'a', '"a" must be a number'],
  ['a whole number', z.int(), 1.5, '1.5 must be a whole number'],
  ['true or false', z.boolean(), 'yes', '"yes" must be true or false'],
  ['a list', z.array(z.string()), {}, '{} must be a list'],
  ['a map', z.strictObject({}), [], '[] must be a map'],
  ['not empty', z.string().min(1), '', '"" must not be empty'],
  ['at most', z.number().max(3), 4, '4 must be at most 3'],
  ['at least', z.number().min(3), 2, '2 must be at least 3'],
  ['one of', z.enum(['a', 'b']), 'c', '"c" must be one of a, b'],
  ['its own words', z.string().regex(/a/, 'has no a'), 'b', '"b" has no a'],
])('validateValue: %s', (_, schema, value, message) => {
  expect(validateValue(schema, value)).toEqual({ message })
})

test('validateValue gives the value in its one form', () => {
  expect(validateValue(z.string().toLowerCase(), 'AB')).toEqual({ value: 'ab' })
})
