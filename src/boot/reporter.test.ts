import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import type { Sighting, SightingBatch } from '../nodes/reports.ts'
import { Reporter } from './reporter.ts'

const START = Date.parse('2026-03-01T12:00:00.000Z')

beforeEach(() => void vi.useFakeTimers({ now: START }))
afterEach(() => void vi.useRealTimers())

const at = (): string => new Date().toISOString()
/** Steps are told apart by their detail. */
const step = (detail: string | number): Sighting => ({
  kind: 'phase',
  at: at(),
  server: '10.77.0.1',
  mac: '52:54:00:00:00:01',
  node: 'n1',
  phase: 'loader',
  detail: String(detail),
})
const status = (node: string, reason = '', server = '10.77.0.1'): Sighting => ({
  kind: 'status',
  at: at(),
  server,
  mac: '52:54:00:00:00:01',
  node,
  boot: '0123456789abcdef',
  kernel: '6.1',
  hostname: node,
  addresses: [],
  health: { status: reason === '' ? 'ok' : 'bad', reason },
})

/** A control role that can be away, slow or picky; and what it was told. */
class Control {
  readonly batches: SightingBatch[] = []
  readonly attempts: number[] = []
  answer: (batch: SightingBatch) => void | Promise<void> = () => {}
  readonly send = async (batch: SightingBatch): Promise<void> => {
    this.attempts.push(Date.now() - START)
    await this.answer(batch)
    this.batches.push(batch)
  }
  /** Of all that arrived: what steps say, and who else is told of. */
  get told(): string[] {
    return this.batches.flatMap(({ sightings }) => sightings.map(wordsOf))
  }
}
const wordsOf = (sighting: Sighting): string =>
  sighting.kind === 'phase'
    ? (sighting.detail ?? '')
    : sighting.kind === 'machine'
      ? sighting.facts.mac
      : nodeOf(sighting)
const nodeOf = (sighting: Exclude<Sighting, { kind: 'machine' }>): string =>
  sighting.kind === 'relayed' ? sighting.mac : (sighting.node ?? '')

const away = (): never => {
  throw new MusterError('SERVER_UNREACHABLE', 'nobody listens there')
}

function start(control: Control): { reporter: Reporter; logged: string[] } {
  const logged: string[] = []
  const logger = pino(
    { base: null, timestamp: false },
    { write: line => void logged.push((JSON.parse(line) as { msg: string }).msg) },
  )
  return { reporter: new Reporter(control.send, logger), logged }
}

describe('what is seen', () => {
  it('is handed on a quarter of a second later, together and in order', async () => {
    const control = new Control()
    const { reporter } = start(control)
    reporter.tell(step(1))
    reporter.heard('n2')
    reporter.tell(step(2))
    reporter.heard('n1')
    reporter.heard('n2')
    await vi.advanceTimersByTimeAsync(249)
    expect(control.batches).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(control.batches).toEqual([{ sightings: [expect.anything(), expect.anything()], heard: 'n[1-2]' }])
    expect(control.told).toEqual(['1', '2'])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(control.batches).toHaveLength(1)
  })

  it('while a batch is on its way goes with the next', async () => {
    const control = new Control()
    const { reporter } = start(control)
    const gate = Promise.withResolvers<void>()
    control.answer = () => gate.promise
    reporter.tell(step(1))
    await vi.advanceTimersByTimeAsync(250)
    reporter.tell(step(2))
    await vi.advanceTimersByTimeAsync(5000)
    reporter.tell(step(3))
    expect(control.attempts).toEqual([250])
    gate.resolve()
    await vi.advanceTimersByTimeAsync(250)
    expect(control.batches.map(({ sightings }) => sightings.map(wordsOf))).toEqual([['1'], ['2', '3']])
  })
})

describe('a heartbeat', () => {
  it('that says nothing new is only counted', async () => {
    const control = new Control()
    const { reporter } = start(control)
    for (let beat = 0; beat < 5; beat++) {
      reporter.tell(status('n1'))
      reporter.heard('n1')
      await vi.advanceTimersByTimeAsync(10_000)
    }
    expect(control.batches.map(({ sightings, heard }) => [sightings.length, heard])).toEqual([
      [1, 'n1'],
      [0, 'n1'],
      [0, 'n1'],
      [0, 'n1'],
      [0, 'n1'],
    ])
  })

  it('is told whole once a minute: whoever listens may have started anew', async () => {
    const control = new Control()
    const { reporter } = start(control)
    for (let beat = 0; beat < 13; beat++) {
      reporter.tell(status('n1'))
      await vi.advanceTimersByTimeAsync(10_000)
    }
    expect(control.attempts).toEqual([250, 60_250, 120_250])
  })

  it('is told whole when anything is different but time and server', async () => {
    const control = new Control()
    const { reporter } = start(control)
    for (const sighting of [
      status('n1'),
      status('n1', '', '10.77.0.2'),
      status('n1', 'no GPU'),
      status('n1', 'no GPU'),
      status('n1'),
      status('n2'),
    ])
      reporter.tell(sighting)
    await vi.advanceTimersByTimeAsync(250)
    expect(control.told).toEqual(['n1', 'n1', 'n1', 'n2'])
  })
})

describe('while the control role is away', () => {
  it('nothing is lost, and everything is told in order when it is back', async () => {
    const control = new Control()
    const { reporter, logged } = start(control)
    control.answer = away
    for (let second = 0; second < 60; second++) {
      reporter.tell(step(second))
      reporter.heard(`n${second % 3}`)
      await vi.advanceTimersByTimeAsync(1000)
    }
    expect(control.batches).toEqual([])
    control.answer = () => {}
    await vi.advanceTimersByTimeAsync(10_000)
    expect(control.told).toEqual(Array.from({ length: 60 }, (_, second) => String(second)))
    expect(control.batches[0]?.heard).toBe('n[0-2]')
    expect(logged).toEqual(['the control role cannot be told; it will be'])
  })

  it('that is asked less and less often, and at once again when it is back', async () => {
    const control = new Control()
    const { reporter } = start(control)
    control.answer = away
    reporter.tell(step(1))
    await vi.advanceTimersByTimeAsync(45_000)
    expect(control.attempts).toEqual([250, 750, 1750, 3750, 7750, 15_750, 25_750, 35_750])
    control.answer = () => {}
    await vi.advanceTimersByTimeAsync(5000)
    reporter.tell(step(2))
    await vi.advanceTimersByTimeAsync(250)
    expect(control.attempts.slice(-2)).toEqual([45_750, 50_250])
    expect(control.told).toEqual(['1', '2'])
  })

  it('the newest is kept when it is too much, and it is said how much was not', async () => {
    const control = new Control()
    const { reporter, logged } = start(control)
    control.answer = away
    for (let index = 0; index < 52_000; index++) reporter.tell(step(index))
    await vi.advanceTimersByTimeAsync(1000)
    control.answer = () => {}
    await vi.advanceTimersByTimeAsync(20_000)
    expect(control.told).toEqual(Array.from({ length: 47_000 }, (_, index) => String(index + 5000)))
    expect(logged).toContain('sightings were dropped while nobody listened')
  })

  it('a backlog goes in batches, one at a time', async () => {
    const control = new Control()
    const { reporter } = start(control)
    let underway = 0
    let most = 0
    control.answer = async () => {
      most = Math.max(most, ++underway)
      await new Promise(resolve => setTimeout(resolve, 700))
      underway--
    }
    for (let index = 0; index < 25_000; index++) {
      reporter.tell(step(index))
      if (index % 5000 === 0) await vi.advanceTimersByTimeAsync(200)
    }
    await vi.advanceTimersByTimeAsync(20_000)
    expect(most).toBe(1)
    expect(Math.max(...control.batches.map(({ sightings }) => sightings.length))).toBeLessThanOrEqual(10_000)
    expect(control.told).toEqual(Array.from({ length: 25_000 }, (_, index) => String(index)))
  })

  it('a batch that fails in the middle of a backlog comes first again', async () => {
    const control = new Control()
    const { reporter } = start(control)
    let calls = 0
    control.answer = () => (++calls === 2 ? away() : undefined)
    for (let index = 0; index < 25_000; index++) reporter.tell(step(index))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(control.told).toEqual(Array.from({ length: 25_000 }, (_, index) => String(index)))
  })
})

describe('what the control role does not take', () => {
  it.for(['REQUEST_INVALID', 'USAGE'] as const)('%s: is given up, and the rest goes on', async code => {
    const control = new Control()
    const { reporter, logged } = start(control)
    control.answer = ({ sightings }) => {
      if (sightings.some(sighting => wordsOf(sighting) === 'bad')) throw new MusterError(code, 'what is that?')
    }
    reporter.tell(step('bad'))
    await vi.advanceTimersByTimeAsync(250)
    reporter.tell(step('good'))
    await vi.advanceTimersByTimeAsync(250)
    expect(control.told).toEqual(['good'])
    expect(logged).toEqual(['the control role refuses what was seen'])
  })

  it('because it is too large goes in smaller parts', async () => {
    const control = new Control()
    const { reporter } = start(control)
    control.answer = ({ sightings }) => {
      if (sightings.length > 300 || sightings.some(sighting => wordsOf(sighting) === '42'))
        throw new MusterError('BODY_TOO_LARGE', 'too much')
    }
    for (let index = 0; index < 1000; index++) reporter.tell(step(index))
    await vi.advanceTimersByTimeAsync(600_000)
    expect(control.told).toEqual(
      Array.from({ length: 1000 }, (_, index) => String(index)).filter(word => word !== '42'),
    )
  })
})

describe('at the end', () => {
  it('what is left is told', async () => {
    const control = new Control()
    const { reporter } = start(control)
    for (let index = 0; index < 15_000; index++) reporter.tell(step(index))
    reporter.heard('n1')
    await reporter[Symbol.asyncDispose]()
    expect(control.told).toHaveLength(15_000)
    expect(control.batches[0]?.heard).toBe('n1')
  })

  it('what is on its way is waited for, and what comes after it is told', async () => {
    const control = new Control()
    const { reporter } = start(control)
    control.answer = () => new Promise(resolve => void setTimeout(resolve, 2000))
    reporter.tell(step(1))
    await vi.advanceTimersByTimeAsync(250)
    reporter.tell(step(2))
    const disposed = reporter[Symbol.asyncDispose]()
    await vi.advanceTimersByTimeAsync(4000)
    await disposed
    expect(control.told).toEqual(['1', '2'])
  })

  it('a control role that is away is asked once more, and no longer', async () => {
    const control = new Control()
    const { reporter } = start(control)
    control.answer = away
    reporter.tell(step(1))
    await reporter[Symbol.asyncDispose]()
    expect(control.attempts).toEqual([0])
    reporter.tell(step(2))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(control.attempts).toEqual([0])
  })

  it('a control role that does not answer is not waited for', async () => {
    const control = new Control()
    const { reporter } = start(control)
    control.answer = () => new Promise(() => {})
    reporter.tell(step(1))
    const disposed = reporter[Symbol.asyncDispose]()
    await vi.advanceTimersByTimeAsync(5000)
    await expect(disposed).resolves.toBeUndefined()
  })

  it('nothing is told when there is nothing', async () => {
    const control = new Control()
    await start(control).reporter[Symbol.asyncDispose]()
    expect(control.attempts).toEqual([])
  })
})
