import { expect, test } from 'vitest'
import { RateLimiter } from './rate.ts'

test('spends the burst, then refills at its rate, each key for itself', () => {
  let now = 0
  const limiter = new RateLimiter(10, 3, () => now)
  const take = (key: string, times: number): boolean[] => Array.from({ length: times }, () => limiter.take(key))
  expect(take('a', 4)).toEqual([true, true, true, false])
  expect(take('b', 1)).toEqual([true])
  now += 100
  expect(take('a', 2)).toEqual([true, false])
  now += 60_000
  expect(take('a', 4)).toEqual([true, true, true, false])
})

test('a flood of invented keys does not grow without end, and leaves honest keys their limit', () => {
  let now = 0
  const limiter = new RateLimiter(1, 1, () => now)
  for (let key = 0; key < 50_000; key++) {
    now += 1
    limiter.take(String(key))
  }
  expect(limiter.take('honest')).toBe(true)
  expect(limiter.take('honest')).toBe(false)
})
