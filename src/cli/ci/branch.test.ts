import { expect, test } from 'vitest'
import { channelOf } from './branch.ts'

test.each([
  ['main', 'dev'],
  ['master', 'dev'],
  ['gpu', 'gpu'],
  ['Feature/New_GPU', 'feature-new_gpu'],
  ['fix#12: a, b', 'fix-12-a-b'],
  ['--x--', 'x'],
  ['x'.repeat(70), 'x'.repeat(63)],
])('the channel of the branch %s is %s', (branch, channel) => {
  expect(channelOf(branch)).toBe(channel)
})

test.each(['', '---', '/'])('%j gives no channel', branch => {
  expect(channelOf(branch)).toBeUndefined()
})
