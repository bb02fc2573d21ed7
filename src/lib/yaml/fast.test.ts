import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { readFast } from './fast.ts'
import { readFull } from './full.ts'
import { ORDINARY, show } from './test-support.ts'
import type { YamlResult } from './tree.ts'

describe('reads ordinary files as the yaml package does', () => {
  test.each(Object.entries(ORDINARY))('%s', (_, text) => {
    expect(readFast(text)).toEqual(readFull(text))
  })

  test('a file of 500 nodes', () => {
    const text = Array.from(
      { length: 500 },
      (_, i) => `n${i}:\n  groups: [compute, rack1]\n  interfaces:\n    prov: { mac: "52:54:00:00:00:01" }\n`,
    ).join('')
    expect(readFast(text)).toEqual(readFull(text))
  })
})

describe('knows the line and column of every value', () => {
  const cases: [string, string, string[]][] = [
    ['a map', 'a: 1\nbb:  x\n', ['1:1 map', '  1:1 a = 1:4 1', '  2:1 bb = 2:6 "x"']],
    [
      'maps below maps',
      '# c\na:\n\n  b: { c: d }\n',
      ['2:1 map', '  2:1 a = 4:3 map', '    4:3 b = 4:6 map', '      4:8 c = 4:11 "d"'],
    ],
    [
      'an empty value is after its colon',
      'a:\nb:  \nc:   # none\nd:',
      ['1:1 map', '  1:1 a = 1:3 null', '  2:1 b = 2:5 null', '  3:1 c = 3:6 null', '  4:1 d = 4:3 null'],
    ],
    [
      'lists below their key, or indented',
      'a:\n- x\nb:\n    - y\n',
      ['1:1 map', '  1:1 a = 2:1 list', '    2:3 "x"', '  3:1 b = 4:5 list', '    4:7 "y"'],
    ],
    [
      'maps in lists',
      '- a: 1\n  b: 2\n-   - c\n',
      ['1:1 list', '  1:3 map', '    1:3 a = 1:6 1', '    2:3 b = 2:6 2', '  3:5 list', '    3:7 "c"'],
    ],
    [
      'brackets over lines',
      'a: [\n  x, {y: "z"},\n]\n',
      ['1:1 map', '  1:1 a = 1:4 list', '    2:3 "x"', '    2:6 map', '      2:7 y = 2:10 "z"'],
    ],
    [
      'text blocks stand at their bar, tagged values after the tag',
      'a: |\n  x\n\n  y\nb: !age |-\n  z\nc: !age w\n',
      ['1:1 map', '  1:1 a = 1:4 "x\\n\\ny\\n"', '  5:1 b = 5:9 !age "z"', '  7:1 c = 7:9 !age "w"'],
    ],
  ]
  test.each(cases)('%s', (_, text, expected) => {
    expect(show(readFast(text) ?? { problems: [] })).toEqual(expected)
    expect(show(readFull(text))).toEqual(expected)
  })
})

describe('gives plain scalars the meaning of the core schema', () => {
  const cases: [string, unknown][] = [
    ['~', null],
    ['null', null],
    ['Null', null],
    ['nULL', 'nULL'],
    ['true', true],
    ['TRUE', true],
    ['False', false],
    ['yes', 'yes'],
    ['on', 'on'],
    ['0', 0],
    ['-0', -0],
    ['+12', 12],
    ['007', 7],
    ['0o17', 15],
    ['0o8', '0o8'],
    ['0x1F', 31],
    ['-0x1F', '-0x1F'],
    ['1_000', '1_000'],
    ['1.', 1],
    ['.5', 0.5],
    ['-1.50', -1.5],
    ['1e3', 1000],
    ['1.e-2', 0.01],
    ['.inf', Number.POSITIVE_INFINITY],
    ['-.Inf', Number.NEGATIVE_INFINITY],
    ['.nan', Number.NaN],
    ['-.nan', '-.nan'],
    ['.', '.'],
    ['1.2.3', '1.2.3'],
    ['10.77.0.0/16', '10.77.0.0/16'],
    ['12:30', '12:30'],
    ['2024-01-31', '2024-01-31'],
    ['truest', 'truest'],
    ['9007199254740993', 9_007_199_254_740_992],
    ['"1"', '1'],
    ["'true'", 'true'],
    [String.raw`"\x41\u00e9\n\"\\\/\0"`, 'Aé\n"\\/\0'],
    ["'a''b'", "a'b"],
    ['""', ''],
    ['::1', '::1'],
    ['-x', '-x'],
    ['a # b', 'a'],
    ['a#b', 'a#b'],
    ['{}', undefined],
  ]
  test.each(cases)('%s', (source, value) => {
    const text = `key: ${source}\n`
    const tree = readFast(text)?.tree
    expect(tree).toEqual(readFull(text).tree)
    const read = tree?.kind === 'map' ? tree.entries.get('key')?.value : undefined
    expect(read?.kind === 'scalar' ? read.value : undefined).toBe(value)
  })
})

describe('gives up on', () => {
  const cases: [string, string][] = [
    ['Windows line ends', 'a: 1\r\n'],
    ['a byte-order mark', '\uFEFFa: 1\n'],
    ['control characters', 'a: \u0007\n'],
    ['tabs in indentation', 'a:\n\tb: 1\n'],
    ['tabs after a colon', 'a:\tb\n'],
    ['tabs in plain scalars', 'a: b\tc\n'],
    ['plain scalars of several lines', 'a: b\n  c\n'],
    ['scalars below their key', 'a:\n  b\n'],
    ['quoted scalars of several lines', 'a: "b\n  c"\n'],
    ['plain scalars of several lines in brackets', 'a: [b\n  c]\n'],
    ['folded text', 'a: >\n  b\n'],
    ['text that keeps its end', 'a: |+\n  b\n'],
    ['text with an indentation mark', 'a: |2\n   b\n'],
    ['text without lines', 'a: |\nb: 1\n'],
    ['explicit keys', '? a\n: b\n'],
    ['missing keys', ': b\n'],
    ['anchors', 'a: &x b\n'],
    ['aliases', 'a: *x\n'],
    ['merge keys', '<<: { a: b }\n'],
    ['merge keys in braces', 'a: { <<: b }\n'],
    ['other tags', 'a: !!str 1\n'],
    ['tagged collections', 'a: !age [b]\n'],
    ['directives', '%YAML 1.2\n---\na: 1\n'],
    ['several documents', 'a: 1\n---\nb: 1\n'],
    ['document ends', 'a: 1\n...\n'],
    ['start marks before a key', '--- a: 1\n'],
    ['end marks before a key', 'a: 1\n... b: 2\n'],
    ['lines of too many spaces in text', 'a: |\n  b\n    \nc: 1\n'],
    ['duplicate keys', 'a: 1\na: 2\n'],
    ['duplicate keys by text', '1: x\n"1": y\n'],
    ['duplicate keys in braces', 'a: { b: 1, b: 2 }\n'],
    ['keys that are lists', '[a]: b\n'],
    ['pairs in brackets', 'a: [b: c]\n'],
    ['braces without values', 'a: { b }\n'],
    ['commas too many', 'a: [b,, c]\n'],
    ['brackets that do not match', 'a: [b}\n'],
    ['brackets that are not closed', 'a: [b\n'],
    ['brackets indented too little', 'a:\n  b: [\n c]\n'],
    ['comments without a space before', 'a: "b"#c\n'],
    ['comments without a space before in brackets', 'a: [b,#c\n  d]\n'],
    ['comments at the start of a line in brackets', 'a: {\n  b: c\n# d\n}\n'],
    ['text after a quote', 'a: "b" c\n'],
    ['maps on the line of a key', 'a: b: c\n'],
    ['lists on the line of a key', 'a: - b\n'],
    ['unknown escapes', String.raw`a: "\q"`],
    ['reserved characters', 'a: @b\n'],
    ['odd indentation', 'a:\n    b: 1\n  c: 2\n'],
    ['a map that starts indented', '  a: 1\n'],
    ['a scalar alone', 'hello\n'],
    ['dashes without a value', '-\n- a\n'],
    ['lists after a value', 'a: 1\n- b\n'],
    ['keys of a thousand letters', `${'x'.repeat(1025)}: 1\n`],
    ['65 brackets', `a: ${'['.repeat(64)}${']'.repeat(64)}\n`],
    ['65 maps', Array.from({ length: 66 }, (_, i) => `${' '.repeat(i)}a:\n`).join('')],
  ]
  test.each(cases)('%s', (_, text) => {
    expect(readFast(text)).toBeUndefined()
  })
})

const fullIfFast = (text: string): YamlResult | undefined => (readFast(text) === undefined ? undefined : readFull(text))

// The one promise: where there is a fast reading, it is the full one, which then has nothing to complain about.
describe('never disagrees with the yaml package', () => {
  const scalar = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ unit: 'grapheme', maxLength: 6 }),
    fc.constantFrom(
      '',
      ' ',
      'a b',
      'a: b',
      '- a',
      '#',
      'x #y',
      'null',
      '1',
      '{',
      '[a]',
      'one\ntwo\n',
      '\nx',
      "it's",
      '!age',
    ),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
  )
  const { data } = fc.letrec(tie => ({
    data: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('data'), { maxLength: 4 }), tie('map')),
    map: fc.dictionary(fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('a', 'b', 'c d', '1')), tie('data'), {
      maxKeys: 4,
    }),
  }))
  const style = fc.record({
    collectionStyle: fc.constantFrom('any', 'block', 'flow'),
    defaultStringType: fc.constantFrom('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE', 'BLOCK_LITERAL'),
    indent: fc.constantFrom(2, 3, 4),
    indentSeq: fc.boolean(),
    lineWidth: fc.constantFrom(0, 20, 80),
  })
  const comment = fc.record({ at: fc.nat(40), text: fc.constantFrom('# c', '    # deep', '', '  ', '#', ' #x: [') })

  test('on what it writes itself, in any style, with comments between the lines', () => {
    fc.assert(
      fc.property(data, style, fc.array(comment, { maxLength: 3 }), (value, options, comments) => {
        const lines = stringify({ root: value }, options).split('\n')
        for (const { at, text } of comments) lines.splice(at % lines.length, 0, text)
        const text = lines.join('\n')
        expect(readFast(text)).toEqual(fullIfFast(text))
      }),
      { numRuns: 2000 },
    )
  })

  const scraps = [
    ...': - { } [ ] " \' # & * ! | > % @ , ? ~ ` . \\'.split(' '),
    '\t',
    '\n',
    ' ',
    '  ',
    '\n  ',
    '\n- ',
    ': ',
    ' #',
  ]
  const mutation = fc.record({
    at: fc.nat(),
    remove: fc.constantFrom(0, 0, 0, 1, 2, 5),
    insert: fc.constantFrom(
      '',
      'a',
      '0',
      '---\n',
      '--- ',
      '... ',
      '\r\n',
      '!age ',
      '|\n',
      '|-\n',
      '<<',
      "''",
      ...scraps,
    ),
  })

  test('on ordinary files with a few characters wrong', () => {
    let kept = 0
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(ORDINARY)),
        fc.array(mutation, { minLength: 1, maxLength: 3 }),
        (ordinary, mutations) => {
          const text = mutations.reduce((before, { at, remove, insert }) => {
            const offset = at % (before.length + 1)
            return before.slice(0, offset) + insert + before.slice(offset + remove)
          }, ordinary)
          if (readFast(text) !== undefined) kept++
          expect(readFast(text)).toEqual(fullIfFast(text))
        },
      ),
      { numRuns: 6000 },
    )
    // Were it to give up on everything, it would agree too.
    expect(kept).toBeGreaterThan(600)
  })

  const tokens = [
    'a',
    'b: ',
    'c: ',
    'a:\n',
    'b:\n  ',
    '\n    ',
    '\n  - ',
    '- ',
    '|\n  t\n',
    '|-\n    t\n',
    '"q"',
    "'s'",
  ]
  tokens.push('{a: 1}', '[a]', '{"a":1}', '[\n', '\n]', '\n   \n', '\n# c\n', '\n      # c\n', ' # c', '-1', '1e3')

  test('on tokens thrown together', () => {
    const token = fc.constantFrom(...tokens, ...scraps)
    fc.assert(
      fc.property(fc.array(token, { minLength: 1, maxLength: 12 }), thrown => {
        const text = thrown.join('')
        expect(readFast(text)).toEqual(fullIfFast(text))
        expect(readFast(`k: ${text}`)).toEqual(fullIfFast(`k: ${text}`))
      }),
      { numRuns: 8000 },
    )
  })
})
