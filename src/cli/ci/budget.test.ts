import { expect, test } from 'vitest'
import { failureOf } from '../../site/testing.ts'
import { type BudgetFlags, imagesAtOnce } from './budget.ts'

const GIB = 2 ** 30

test.each<[cores: number, gibibytes: number, flags: BudgetFlags, count: number]>([
  [8, 64, {}, 8],
  [8, 7, {}, 3],
  [1, 64, {}, 1],
  // However little there is, one after another always goes.
  [8, 0.5, {}, 1],
  [8, 64, { jobs: '2' }, 2],
  [2, 64, { jobs: '6' }, 6],
  [8, 64, { memory: '4GiB' }, 2],
  [8, 2, { memory: '64 GiB' }, 8],
  [8, 64, { memory: '4GiB', jobs: '6' }, 2],
  [8, 64, { memory: '100M' }, 1],
])('%d cores and %d GiB with %j: %d at once', (cores, gibibytes, flags, count) => {
  expect(imagesAtOnce(flags, { cores, memory: gibibytes * GIB })).toBe(count)
})

test.each<[BudgetFlags, string]>([
  [{ jobs: '0' }, 'USAGE: 0 is too small: at least 1'],
  [{ jobs: 'all' }, 'USAGE: all is not a whole number'],
  [{ memory: 'much' }, 'USAGE: much is not a size such as 8G or 6 GiB'],
])('%j is refused', async (flags, failure) => {
  expect(await failureOf(() => imagesAtOnce(flags, { cores: 1, memory: GIB }))).toBe(failure)
})
