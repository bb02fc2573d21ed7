/**
 * Checked against ClusterShell 1.9.1 on 2,000 random expressions: where both take them, they mean the same. Deliberately different:
 *
 *   n1 n2          a union here; ClusterShell's library takes the space as part of a name (its command line does as we do)
 *   n1[8-11]       n18 n19 n110 n111: digits beside brackets are just written there; ClusterShell reads n[18-111]
 *   n[1-9/2]5      allowed, as is n[1-3][1-3]; ClusterShell refuses both
 *   n[-1]  n[1-2-3]  refused: there are no negative nodes
 *   n$  n{1-3}       refused: no host has such a name
 *   @x  n*           an error when nobody can say what they mean; ClusterShell gives the empty set
 */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MusterError } from '../errors.ts'
import { NodeSet, parseNodeSet, type GroupResolver } from './index.ts'

const site: Record<string, readonly string[]> = {
  gpu: ['n3', 'n4'],
  rack1: ['n1', 'n2'],
  rack2: ['n3', 'n4'],
  'dc2:gpu': ['m1'],
  'dc2:*': ['m1', 'm2'],
  none: [],
}
const groups: GroupResolver = {
  members: group => site[group],
  all: () => ['n1', 'n2', 'n3', 'n4', 'n11', 'n21-ib', 'login1', 'm1', 'm2'],
}

test.each([
  ['', ''],
  [' \n ', ''],
  ['n1', 'n1'],
  ['n[1-3]', 'n1 n2 n3'],
  ['n[08-11]', 'n08 n09 n10 n11'],
  ['n[8-11]', 'n8 n9 n10 n11'],
  ['n[001-003]', 'n001 n002 n003'],
  ['n[1-9/2]', 'n1 n3 n5 n7 n9'],
  ['n[00-10/5]', 'n00 n05 n10'],
  ['n[5-12/3]', 'n5 n8 n11'],
  ['n[1,3,5-7]', 'n1 n3 n5 n6 n7'],
  ['n[5,5,1-2,2-3]', 'n1 n2 n3 n5'],
  ['n[1,01,001]', 'n1 n01 n001'],
  ['n[ 1 - 3 , 5 ]', 'n1 n2 n3 n5'],
  ['n[1]', 'n1'],
  ['n[1-1]', 'n1'],
  ['n[1-3]-ib', 'n1-ib n2-ib n3-ib'],
  ['[1-3]', '1 2 3'],
  ['r[1-2]n[01-02]', 'r1n01 r1n02 r2n01 r2n02'],
  ['n[1-2]-ib[0-1].x', 'n1-ib0.x n1-ib1.x n2-ib0.x n2-ib1.x'],
  // Digits beside brackets are digits of the same number.
  ['n5[1-3]', 'n51 n52 n53'],
  ['n[1-3]5', 'n15 n25 n35'],
  ['n0[8-11]', 'n08 n09 n010 n011'],
  ['n1[01-02]7x', 'n1017x n1027x'],
  ['n[1-2][0-1]', 'n10 n11 n20 n21'],
  // Union.
  ['n1,n2', 'n1 n2'],
  ['n1 , n2', 'n1 n2'],
  ['n1 n2', 'n1 n2'],
  ['\tn1\r\nn2,\nn3\n', 'n1 n2 n3'],
  ['n1,n1', 'n1'],
  ['login,r1n1,n1', 'login n1 r1n1'],
  // Operators, from the left.
  ['n[1-5]!n3', 'n1 n2 n4 n5'],
  ['n[1-5] ! n3', 'n1 n2 n4 n5'],
  ['n[1-5]&n[4-9]', 'n4 n5'],
  ['n[1-3]^n[2-4]', 'n1 n4'],
  ['n[1-5],n9!n[1-3],n2', 'n2 n4 n5 n9'],
  ['n[1-3]&n[2-9]^n2,n7', 'n3 n7'],
  ['n1 n2!n1', 'n2'],
  ['n1!n1', ''],
  // Groups.
  ['@gpu', 'n3 n4'],
  ['@none', ''],
  ['@rack[1-2]', 'n1 n2 n3 n4'],
  ['@rack[1-2]!@gpu', 'n1 n2'],
  ['@dc2:gpu', 'm1'],
  ['@dc2:*', 'm1 m2'],
  ['@all', 'login1 m1 m2 n1 n2 n3 n4 n11 n21-ib'],
  ['@*', 'login1 m1 m2 n1 n2 n3 n4 n11 n21-ib'],
  ['@*!@gpu&n[1-9]', 'n1 n2'],
  // Wild cards.
  ['n*', 'n1 n2 n3 n4 n11 n21-ib'],
  ['n?1', 'n11'],
  ['n?1*', 'n11 n21-ib'],
  ['?[1-2]', 'm1 m2 n1 n2'],
  ['zz*', ''],
  ['*!n*', 'login1 m1 m2'],
])('%j is %s', (text, names) => {
  expect([...parseNodeSet(text, { groups })].join(' ')).toBe(names)
})

describe('errors say what is wrong and where', () => {
  test.each([
    ['n[5-1]', 3, 'the range 5-1 runs backwards, write 1-5'],
    [
      'n[001-10]',
      3,
      '001-10 goes from 3 to 2 digits; with zeros in front both ends need the same length, as in 001-010',
    ],
    [
      'n[1,1-010]',
      5,
      '1-010 goes from 1 to 3 digits; with zeros in front both ends need the same length, as in 001-010',
    ],
    ['n[]', 2, 'the brackets are empty'],
    ['n[ ]', 2, 'the brackets are empty'],
    ['n1,n[1-2', 5, 'this [ is never closed'],
    ['n[', 2, 'this [ is never closed'],
    ['n[1,', 2, 'this [ is never closed'],
    ['n1]', 3, 'this ] was never opened'],
    ['n[1]]', 5, 'this ] was never opened'],
    ['n[[1]]', 3, 'expected a number, found ['],
    ['n[1,]', 5, 'expected a number, found ]'],
    ['n[,1]', 3, 'expected a number, found ,'],
    ['n[a-b]', 3, 'expected a number, found a'],
    ['n[-1]', 3, 'expected a number, found -'],
    ['n[1-]', 5, 'expected the end of the range 1-, found ]'],
    ['n[1-2-3]', 6, 'expected , or ] after 1-2, found -'],
    ['n[1 2]', 5, 'expected , or ] after 1, found 2'],
    ['n[1-9/0]', 7, 'the step is 0, it must be at least 1'],
    ['n[1-9/]', 7, 'expected the step, found ]'],
    ['n[5/2]', 4, 'a step needs a range, as in 5-99/2'],
    ['n1,', 3, 'nothing follows the ,'],
    ['n1 ! ', 4, 'nothing follows the !'],
    [',n1', 1, 'expected a node, found ,'],
    ['!n1', 1, 'expected a node, found !'],
    ['n1,,n2', 4, 'expected a node, found ,'],
    ['n1 & & n2', 6, 'expected a node, found &'],
    ['n$', 2, '$ cannot be in a name'],
    ['n{1-3}', 2, '{ cannot be in a name'],
    ['n1;reboot', 3, '; cannot be in a name'],
    ['kö', 2, '"ö" cannot be in a name'],
    ['n1,🚀', 4, '"🚀" cannot be in a name'],
    ['a:b', 2, ': cannot be in a name'],
    ['n#', 2, '# cannot be in a name'],
    ['n1@gpu', 3, '@ begins a group and cannot stand inside a name'],
    ['n[1-5] - n3', 8, 'no name begins with -'],
    ['@', 2, 'expected the name of a group, found the end'],
    ['@,n1', 2, 'expected the name of a group, found ,'],
    ['@@gpu', 2, '@ begins a group and cannot stand inside a name'],
    ['@g*', 1, 'groups have no wild cards, but @* and @source:*'],
    ['@g?', 3, '? cannot be in a name'],
    ['n[1-9007199254740993]', 5, '9007199254740993 has more than 15 digits'],
    ['n1,n9007199254740993', 4, 'a number in this name has more than 15 digits'],
    ['n12345678[00000001-00000002]', 1, 'a number in this name has more than 15 digits'],
    ['*[1-2000]', 1, 'these are 2,000 wild cards, the limit is 1,000'],
  ])('%s', (text, column, what) => {
    const error = thrown(() => parseNodeSet(text, { groups }))
    expect(error).toEqual({ code: 'NODESET_INVALID', message: `node set ${text}, column ${column}: ${what}` })
  })

  test('a group that does not exist', () => {
    expect(thrown(() => parseNodeSet('n1,@rack[2-3]', { groups }))).toEqual({
      code: 'GROUP_UNKNOWN',
      message: 'node set n1,@rack[2-3], column 4: no group is named rack3',
    })
  })

  test.each([
    ['@gpu', 'node set @gpu, column 1: groups are not known here'],
    ['n1,n*', 'node set n1,n*, column 4: wild cards need the list of all nodes, which is not known here'],
  ])('%s where nobody knows the nodes', (text, message) => {
    expect(thrown(() => parseNodeSet(text))).toEqual({ code: 'NODESET_INVALID', message })
  })

  test('a long text, or one of several lines, is not repeated', () => {
    expect(thrown(() => parseNodeSet('n1\nn[')).message).toBe('node set, column 5: this [ is never closed')
    expect(thrown(() => parseNodeSet(`${'n1,'.repeat(30)}n[`)).message).toBe(
      'node set, column 92: this [ is never closed',
    )
  })
})

describe('the limit', () => {
  test.each([
    ['n[1-999999999999]', 'column 2: these are 999,999,999,999 numbers, the limit is 1,000,000'],
    ['n[1-999999999/2]', 'column 2: these are 500,000,000 numbers, the limit is 1,000,000'],
    ['r[1-9999]n[1-9999]', 'column 1: this is 99,980,001 names, the limit is 1,000,000'],
    ['n[1-9999][1-9999]', 'column 1: this is 99,980,001 names, the limit is 1,000,000'],
    ['a[0-999999],b1', 'column 15: up to here 1,000,001 names, the limit is 1,000,000'],
    ['a[0-999999],b[0-999999],c1,d1', 'column 27: up to here 2,000,001 names, the limit is 1,000,000'],
    ['a[1-600000]^b[1-600000]', 'column 24: up to here 1,200,000 names, the limit is 1,000,000'],
    ['@rack[1-9999999]', 'column 6: these are 9,999,999 numbers, the limit is 1,000,000'],
  ])('%s is refused before it is written out', (text, what) => {
    expect(thrown(() => parseNodeSet(text, { groups })).message).toBe(`node set ${text}, ${what}`)
  })

  test('can be set', () => {
    expect(parseNodeSet('n[1-5]', { limit: 5 }).size).toBe(5)
    expect(() => parseNodeSet('n[1-6]', { limit: 5 })).toThrow('the limit is 5')
    expect(() => parseNodeSet('@all', { limit: 5, groups })).toThrow('9 names, the limit is 5')
  })

  test('counts a name once, however often it is said', () => {
    expect(parseNodeSet('n[1-5],n[1-5],n[1-5],n[1-5],n[2-5]', { limit: 5 }).size).toBe(5)
  })

  test('many large operands are united as they come', () => {
    expect(parseNodeSet(Array.from({ length: 100 }, () => 'n[1-100000/2]').join()).size).toBe(50_000)
  })
})

test('a hundred thousand names are read and written out', () => {
  const names = Array.from({ length: 100_000 }, (_, i) => `n${(i * 7919) % 100_000}`)
  expect(parseNodeSet(names.join()).toString()).toBe('n[0-99999]')
  expect([...parseNodeSet('n[0-99999]')]).toHaveLength(100_000)
})

test('any expression means what the sets of JavaScript say', () => {
  const range = fc
    .tuple(fc.nat(15), fc.nat(15), fc.constantFrom(1, 2, 3), fc.constantFrom(1, 2))
    .map(([low, more, step, width]) => {
      const high = low + more
      const padded = (n: number): string => String(n).padStart(width, '0')
      const values = Array.from({ length: Math.floor(more / step) + 1 }, (_, i) => padded(low + i * step))
      return { text: `[${padded(low)}-${padded(high)}/${step}]`, values }
    })
  const word = fc
    .tuple(range, range, fc.constantFrom(0, 1, 2))
    .map(([a, b, kind]) =>
      kind === 0
        ? { text: 'login', names: ['login'] }
        : kind === 1
          ? { text: `n${a.text}`, names: a.values.map(x => `n${x}`) }
          : { text: `r${a.text}n${b.text}`, names: a.values.flatMap(x => b.values.map(y => `r${x}n${y}`)) },
    )
  const operations = {
    ',': (a: Set<string>, b: Set<string>) => a.union(b),
    ' ': (a: Set<string>, b: Set<string>) => a.union(b),
    '!': (a: Set<string>, b: Set<string>) => a.difference(b),
    '&': (a: Set<string>, b: Set<string>) => a.intersection(b),
    '^': (a: Set<string>, b: Set<string>) => a.symmetricDifference(b),
  }
  const sign = fc.constantFrom(',', ' ', '!', '&', '^')
  fc.assert(
    fc.property(word, fc.array(fc.tuple(sign, word), { maxLength: 5 }), (first, more) => {
      const text = first.text + more.map(([sign, { text }]) => sign + text).join('')
      const names = more.reduce((set, [sign, { names }]) => operations[sign](set, new Set(names)), new Set(first.names))
      expect(parseNodeSet(text).equals(NodeSet.of(names))).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('whatever is typed is either a set or an error that says why', () => {
  const typed = fc.string({ unit: fc.constantFrom(...'n1 0,-[]/!&^@:*?x'.split('')), maxLength: 12 })
  fc.assert(
    fc.property(typed, text => {
      expect(outcome(text)).not.toBe('broken')
    }),
    { numRuns: 5000 },
  )
})

function outcome(text: string): 'a set' | 'an error' | 'broken' {
  try {
    parseNodeSet(text, { groups })
    return 'a set'
  } catch (error) {
    return error instanceof MusterError && /column \d+: ./.test(error.message) ? 'an error' : 'broken'
  }
}

function thrown(run: () => unknown): { code: string; message: string } {
  try {
    run()
  } catch (error) {
    if (error instanceof MusterError) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('nothing was thrown')
}
