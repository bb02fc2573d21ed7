import { expect, test } from 'vitest'
import { Progress } from './progress.ts'

test('is that of the furthest phase, with what was said last', () => {
  const progress = new Progress()
  expect(progress.words).toBe('it has come to kernel, waiting until the initramfs or the agent reports')
  progress.see({ phase: 'fetch' })
  // Reports may overtake each other.
  progress.see({ phase: 'initrd' })
  expect(progress.words).toBe('it has come to fetch, waiting until the root is there and its digest is right')
  progress.see({ phase: 'agent', detail: 'not ready: ib0: no link' })
  expect(progress.words).toBe('it has come to agent, waiting until its health checks pass (not ready: ib0: no link)')
})

test('ends when it is ready, also after a failure', async () => {
  const progress = new Progress()
  progress.see({ phase: 'failed', detail: 'nothing came for 10 s' })
  progress.see({ phase: 'ready' })
  expect(await progress.outcome).toBe('ready')
  expect(progress.words).toBe('it has come to ready')
})

test('ends when it has failed three times', async () => {
  const progress = new Progress()
  const detail = 'the image has 900 MiB, this machine only 700 MiB of free memory'
  for (let time = 0; time < 3; time++) progress.see({ phase: 'failed', detail })
  expect(await progress.outcome).toBe('failing')
  expect(progress.words).toBe(`it has come to kernel, waiting until the initramfs or the agent reports (${detail})`)
})
