import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareNames, NodeSet, parseNodeSet } from './index.ts'
import { anyNames } from './testing.ts'

const sorted = (names: Set<string>): string[] => [...names].sort(compareNames)

const anySet = anyNames.map(names => NodeSet.of(names))

test('a set knows its names', () => {
  const set = NodeSet.of(['n10', 'n9', 'login', 'n9', 'n09', 'r1n1'])
  expect(set.size).toBe(5)
  expect([...set]).toEqual(['login', 'n9', 'n09', 'n10', 'r1n1'])
  expect(String(set)).toBe('login,n[9,09-10],r1n1')
  expect(set.has('n09')).toBe(true)
})

test.each(['n8', 'n009', 'n11', 'm9', 'n', 'r1', 'r1n2', 'r2n1', 'login1', '', 'n[9-10]', '-', 'n9999999999999999999'])(
  'a set does not have %j',
  name => {
    expect(NodeSet.of(['n10', 'n9', 'login', 'n09', 'r1n1']).has(name)).toBe(false)
  },
)

test('the empty set', () => {
  expect(NodeSet.empty.size).toBe(0)
  expect([...NodeSet.empty]).toEqual([])
  expect(String(NodeSet.empty)).toBe('')
  expect(NodeSet.of([]).equals(NodeSet.empty)).toBe(true)
})

test('a set of a set is itself', () => {
  const set = NodeSet.of(['n1'])
  expect(NodeSet.of(set)).toBe(set)
})

test.each([
  ['n[1-5]', 'n[4-8]', { union: 'n[1-8]', difference: 'n[1-3]', intersection: 'n[4-5]', symmetric: 'n[1-3,6-8]' }],
  ['n[1-5]', 'n[01-05]', { union: 'n[1-5,01-05]', difference: 'n[1-5]', intersection: '', symmetric: 'n[1-5,01-05]' }],
  ['n[1-3]', 'n[1-3]', { union: 'n[1-3]', difference: '', intersection: 'n[1-3]', symmetric: '' }],
  ['login,n1', 'login', { union: 'login,n1', difference: 'n1', intersection: 'login', symmetric: 'n1' }],
  [
    'r[1-3]n[1-3]',
    'r2n[2-9]',
    {
      union: 'r[1,3]n[1-3],r2n[1-9]',
      difference: 'r[1,3]n[1-3],r2n1',
      intersection: 'r2n[2-3]',
      symmetric: 'r[1,3]n[1-3],r2n[1,4-9]',
    },
  ],
])('%s and %s', (left, right, expected) => {
  const a = parseNodeSet(left)
  const b = parseNodeSet(right)
  expect(String(a.union(b))).toBe(expected.union)
  expect(String(a.difference(b))).toBe(expected.difference)
  expect(String(a.intersection(b))).toBe(expected.intersection)
  expect(String(a.symmetricDifference(b))).toBe(expected.symmetric)
})

describe('the algebra', () => {
  test('does what the sets of JavaScript do, in natural order', () => {
    fc.assert(
      fc.property(anyNames, anyNames, (left, right) => {
        const a = NodeSet.of(left)
        const b = NodeSet.of(right)
        const x = new Set(left)
        const y = new Set(right)
        expect([...a]).toEqual(sorted(x))
        expect([...a.union(b)]).toEqual(sorted(x.union(y)))
        expect([...a.difference(b)]).toEqual(sorted(x.difference(y)))
        expect([...a.intersection(b)]).toEqual(sorted(x.intersection(y)))
        expect([...a.symmetricDifference(b)]).toEqual(sorted(x.symmetricDifference(y)))
        expect(a.union(b).size).toBe(x.union(y).size)
        for (const name of right) expect(a.has(name)).toBe(x.has(name))
      }),
      { numRuns: 500 },
    )
  })

  // Equal sets have one shape whatever way they were made: equals compares shapes, toString writes them.
  test('gives the same set by different ways', () => {
    fc.assert(
      fc.property(anySet, anySet, anySet, (a, b, c) => {
        const same: [NodeSet, NodeSet][] = [
          [a.union(b), b.union(a)],
          [a.union(b).union(c), a.union(b.union(c))],
          [a.intersection(b), b.intersection(a)],
          [a.intersection(b.union(c)), a.intersection(b).union(a.intersection(c))],
          [a.difference(b), a.difference(a.intersection(b))],
          [a.symmetricDifference(b), a.union(b).difference(a.intersection(b))],
          [a.symmetricDifference(b).symmetricDifference(b), a],
          [a.difference(a), NodeSet.empty],
          [NodeSet.of([...a, ...b]), a.union(b)],
        ]
        for (const [x, y] of same) {
          expect(x.equals(y)).toBe(true)
          expect(String(x)).toBe(String(y))
        }
        expect(a.equals(b)).toBe(String(a) === String(b))
      }),
    )
  })

  test('leaves its operands as they were', () => {
    const a = parseNodeSet('n[1-5]')
    const b = parseNodeSet('n[3-9]')
    a.union(b)
    a.difference(b)
    expect([String(a), String(b)]).toEqual(['n[1-5]', 'n[3-9]'])
  })
})
