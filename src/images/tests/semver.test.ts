import { expect, test } from 'vitest'
import { parseConstraint } from './semver.ts'

test.each([
  ['>1.0.0 <2.0.0 !=1.5.0', '1.9.9', true],
  ['>1.0.0 <2.0.0 !=1.5.0', '1.5.0', false],
  ['>1.0.0 <2.0.0 !=1.5.0', '1.0.0', false],
  ['>5.0.0 || < 1.5.0', '1.0.1', true],
  ['>5.0.0 || < 1.5.0', '2.0.0', false],
  ['1.2.3', '1.2.3', true],
  ['=1.2.3', '1.2.3+build.7', true],
  ['>=1.2.3', '1.2.3-rc.1', false],
  ['>1.2.3-rc.2', '1.2.3-rc.10', true],
  ['>1.2.3-alpha', '1.2.3-alpha.1', true],
  ['1.x', '1.99.0', true],
  ['1.x', '2.0.0', false],
  ['>1.2.x', '1.3.0', true],
  ['>1.2.x', '1.2.9', false],
  ['!=1.2.x', '1.2.9', false],
  ['>=1.0.0', '1:9.2p1-2', undefined],
  ['>=1.0.0', '1.0', undefined],
])('%s: %s → %s', (constraint, version, expected) => {
  expect(parseConstraint(constraint)?.(version)).toBe(expected)
})

test.each(['', '>', 'newest', '~1.2.3', '>1.0.0 ||', '=>1.0.0', '1.0'])('%j is no constraint', text => {
  expect(parseConstraint(text)).toBeUndefined()
})
