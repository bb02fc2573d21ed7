import { expect, test } from 'vitest'
import { didYouMean, suggest } from './suggest.ts'

const keys = ['image', 'root', 'args', 'interfaces', 'location']

test.each([
  ['imgae', 'image'],
  ['iamge', 'image'],
  ['Image', 'image'],
  ['interface', 'interfaces'],
  ['lokation', 'location'],
  ['rot', 'root'],
  ['colour', undefined],
  ['x', undefined],
])('%s → %s', (word, expected) => {
  expect(suggest(word, keys)).toBe(expected)
})

test('didYouMean adds nothing when nothing is near', () => {
  expect(didYouMean('imgae', keys)).toBe(' — did you mean image?')
  expect(didYouMean('zzzzzz', keys)).toBe('')
})
