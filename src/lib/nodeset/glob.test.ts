import { expect, test } from 'vitest'
import { matches } from './glob.ts'

test.each([
  ['*', '', true],
  ['*', 'n1', true],
  ['n*', 'n1', true],
  ['n*', 'm1', false],
  ['*1', 'n11', true],
  ['*1', 'n12', false],
  ['n?1', 'n11', true],
  ['n?1', 'n1', false],
  ['n?1', 'n111', false],
  ['?', '', false],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c-b', false],
  ['**n**', 'n', true],
  ['n1', 'n1', true],
  ['n1', 'n12', false],
  ['n.1', 'nx1', false],
])('%s on %j: %s', (glob, name, expected) => {
  expect(matches(glob, name)).toBe(expected)
})

test('many stars take no exponential time', () => {
  const began = performance.now()
  expect(matches(`${'*a'.repeat(100)}b`, 'a'.repeat(5000))).toBe(false)
  expect(performance.now() - began).toBeLessThan(5000)
})
