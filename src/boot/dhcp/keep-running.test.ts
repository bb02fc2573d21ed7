import { expect, test } from 'vitest'
import { KeptRunning, backOff } from './keep-running.ts'

test('pauses grow from a second to a minute, and start anew after a minute that went well', () => {
  const pauses = Array.from({ length: 8 }).reduce<number[]>(list => [...list, backOff(list.at(-1) ?? 0, 10)], [])
  expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
  expect(backOff(60_000, 59_999)).toBe(60_000)
  expect(backOff(60_000, 60_000)).toBe(1000)
})

interface Events {
  readonly lines: string[]
  readonly deaths: string[]
  next(): Promise<void>
}

function events(): Events & { readonly happened: () => void } {
  let waiting = Promise.withResolvers<void>()
  return {
    lines: [],
    deaths: [],
    next: () => waiting.promise,
    happened: () => {
      waiting.resolve()
      waiting = Promise.withResolvers<void>()
    },
  }
}

function keep(script: string, delay = () => 0): { readonly kept: KeptRunning; readonly seen: Events } {
  const seen = events()
  const kept = new KeptRunning({
    command: 'sh',
    args: ['-c', script],
    delay,
    onLine: line => {
      seen.lines.push(line)
      seen.happened()
    },
    onDied: words => {
      seen.deaths.push(words)
      seen.happened()
    },
  })
  return { kept, seen }
}

async function until(seen: Events, isSo: () => boolean): Promise<void> {
  while (!isSo()) await seen.next()
}

test('one that dies is started again, and its last words are known', async () => {
  const { kept, seen } = keep('echo hello; echo alas >&2; exit 3')
  await using _ = kept
  await kept.restart()
  await until(seen, () => seen.lines.filter(line => line === 'hello').length >= 3)
  expect(kept.deaths).toBeGreaterThanOrEqual(2)
  expect(seen.deaths[0]?.split('\n').toSorted()).toEqual(['alas', 'exit status 3', 'hello'])
})

test('one that is killed is started again', async () => {
  const { kept, seen } = keep('echo ready; exec sleep infinity')
  await using _ = kept
  await kept.restart()
  await until(seen, () => seen.lines.length === 1)
  const before = kept.pid
  kept.signal('SIGKILL')
  await until(seen, () => seen.lines.length === 2)
  expect(kept.pid).not.toBe(before)
  expect(kept.deaths).toBe(1)
  expect(kept.lastWords).toBe('SIGKILL\nready')
})

test('a restart that was asked for is no death', async () => {
  const { kept, seen } = keep('echo ready; exec sleep infinity')
  await using _ = kept
  await kept.restart()
  await kept.restart()
  await until(seen, () => seen.lines.length >= 1 && kept.pid !== undefined)
  expect(kept.deaths).toBe(0)
  expect(seen.deaths).toEqual([])
})

test('another one takes over when it is ready, and only then', async () => {
  const { kept, seen } = keep('echo ready $$; exec sleep infinity')
  await using _ = kept
  await kept.restart()
  await until(seen, () => seen.lines.length === 1)
  const before = kept.pid ?? 0
  await kept.replace(async pid => {
    await until(seen, () => seen.lines.includes(`ready ${pid}`))
    expect(kept.pid).toBe(before)
  })
  expect(kept.pid).not.toBe(before)
  expect(() => process.kill(before, 0)).toThrow('ESRCH')
  expect([kept.deaths, seen.deaths]).toEqual([0, []])
})

test('another one that never gets ready takes nothing over', async () => {
  const { kept, seen } = keep('echo ready; exec sleep infinity')
  await using _ = kept
  await kept.restart()
  const before = kept.pid
  const fresh = Promise.withResolvers<number>()
  await expect(
    kept.replace(async pid => {
      fresh.resolve(pid)
      throw new Error('it is not what we wanted')
    }),
  ).rejects.toThrow('it is not what we wanted')
  expect(kept.pid).toBe(before)
  const gone = await fresh.promise
  expect(() => process.kill(gone, 0)).toThrow('ESRCH')
  await expect(
    kept.replace(async pid => {
      process.kill(pid, 'SIGKILL')
      await new Promise(() => {})
    }),
  ).rejects.toThrow('SIGKILL')
  expect(kept.pid).toBe(before)
  expect(seen.deaths).toEqual([])
})

test('afterwards nothing runs, and nothing is started', async () => {
  const { kept, seen } = keep('echo ready; exec sleep infinity')
  await kept.restart()
  await until(seen, () => seen.lines.length === 1)
  const pid = kept.pid ?? 0
  await kept[Symbol.asyncDispose]()
  expect(kept.pid).toBeUndefined()
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  expect(seen.deaths).toEqual([])
})

test('a program that is not there is said to be missing', async () => {
  const kept = new KeptRunning({ command: 'muster-no-such-program', args: [], onLine: () => {} })
  await expect(kept.restart()).rejects.toThrow('muster-no-such-program: is not installed')
  await kept[Symbol.asyncDispose]()
})
