import { expect, test } from 'vitest'
import { durationWords, parseDuration } from './duration.ts'

test.each([
  ['30s', 30_000],
  ['5m', 300_000],
  ['12h', 43_200_000],
  ['14d', 1_209_600_000],
  ['0d', 0],
])('%s is %i ms', (text, milliseconds) => {
  expect(parseDuration(text)).toBe(milliseconds)
})

test.each(['', '5', 'm', '-1m', '1.5h', '5 m', '5w', '1h30m', '1234567s'])('%j is no duration', text => {
  expect(parseDuration(text)).toBeUndefined()
})

test.each([
  [0, '0 s'],
  [119_999, '119 s'],
  [120_000, '2 min'],
  [7_199_999, '119 min'],
  [7_200_000, '2 h'],
  [172_799_999, '47 h'],
  [172_800_000, '2 days'],
])('%i ms are %s', (milliseconds, words) => {
  expect(durationWords(milliseconds)).toBe(words)
})
