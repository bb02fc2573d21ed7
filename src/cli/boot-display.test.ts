import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ApiClient } from '../api/client.ts'
import type { BootReply } from '../api/schemas.ts'
import type { Phase } from '../nodes/phases.ts'
import { BootDisplay } from './boot-display.ts'
import { type MemoryIo, memoryIo } from './testing.ts'

const START = Date.parse('2026-03-01T12:00:00.000Z')
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString()

const boot = (steps: readonly [Phase, number][], failed?: string): BootReply => {
  const phases = steps.map(([phase, from], index) => {
    const next = steps[index + 1]
    return { phase, at: at(from), ...(next !== undefined && { seconds: next[1] - from }) }
  })
  const last = at(steps.at(-1)?.[1] ?? 0)
  return {
    mac: '52:54:00:00:00:01',
    phases,
    last: { at: last, what: 'something' },
    ...(failed !== undefined && { failed: { at: last, reason: failed } }),
  }
}

/** A server that says each time what comes next, the last for ever. */
interface Script {
  readonly boots?: Readonly<Record<string, readonly (BootReply | undefined)[]>>
  readonly simulated?: readonly string[][]
}

class FakeClient {
  readonly #script: Script
  readonly #asked = new Map<string, number>()
  readonly paths: string[] = []

  constructor(script: Script) {
    this.#script = script
  }

  #next<Item>(key: string, items: readonly Item[]): Item {
    const count = this.#asked.get(key) ?? 0
    this.#asked.set(key, count + 1)
    return items[Math.min(count, items.length - 1)] as Item
  }

  get(path: string): Promise<unknown> {
    this.paths.push(path)
    const node = path.split('/')[4] ?? ''
    const reply = this.#next(node, this.#script.boots?.[node] ?? [undefined])
    return Promise.resolve({ node, boots: reply === undefined ? [] : [reply] })
  }

  async *pages(path: string, query: object): AsyncGenerator<object[]> {
    this.paths.push(`${path} ${JSON.stringify(query)}`)
    const ready = this.#next('simulated', this.#script.simulated ?? [[]])
    yield ['s1', 's2', 's3'].map(name => ({ name, observed: ready.includes(name) ? { boot: { value: 'ready' } } : {} }))
  }
}

interface Shown {
  readonly io: MemoryIo
  readonly client: FakeClient
  readonly left: Promise<string[]>
}

/** Looks twice a second, from twelve o'clock on. */
function show(
  names: readonly string[],
  script: Script,
  options: { terminal?: boolean; others?: string[]; columns?: number; patience?: number } = {},
): Shown {
  vi.useFakeTimers({ now: START, toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const io = memoryIo(options.terminal === true ? { terminal: ['stderr'] } : {})
  if (options.columns !== undefined) Object.assign(io.stderr, { columns: options.columns })
  const client = new FakeClient(script)
  const display = new BootDisplay(io, client as unknown as ApiClient, names)
  const left = display.until(options.others ?? [], options.patience ?? 1e6, io.interrupted)
  return { io, client, left }
}

const READY = boot([
  ['dhcp', 0],
  ['loader', 1],
  ['ready', 4],
])
const READY_LINE = 'dhcp 1.0s ▏ loader 3.0s ▍ ready   4.0 s'

describe('off a terminal', () => {
  it('there is a line per step', async () => {
    const { io, left } = show(['n1', 'n2'], {
      boots: {
        n1: [undefined, boot([['dhcp', 0]]), boot([['dhcp', 0]]), READY],
        n2: [
          boot([['dhcp', 0]]),
          boot([
            ['dhcp', 0],
            ['loader', 1],
          ]),
          boot(
            [
              ['dhcp', 0],
              ['loader', 1],
            ],
            'no route',
          ),
          READY,
        ],
      },
    })
    expect(await left).toEqual([])
    expect(io.said.stderr).toBe(`  n2  dhcp 0.0s …
  n1  dhcp 0.0s …
  n2  dhcp 1.0s ▏ loader 0.0s …
  n2  dhcp 1.0s ▏ loader 0.0s ▏ FAILED: no route
  n1  ${READY_LINE}
  n2  ${READY_LINE}
`)
    expect(io.said.stdout).toBe('')
  })

  it('boots of earlier days do not count', async () => {
    const old = boot([
      ['dhcp', -90],
      ['ready', -60],
    ])
    const { io, left } = show(['n1'], { boots: { n1: [old, old, READY] } })
    expect(await left).toEqual([])
    expect(io.said.stderr).toBe(`  n1  ${READY_LINE}\n`)
  })

  it('simulated nodes are counted, once the machines are ready', async () => {
    const { io, client, left } = show(
      ['n1'],
      { boots: { n1: [boot([['dhcp', 0]]), READY] }, simulated: [[], ['s1'], ['s1'], ['s1', 's2', 's3']] },
      { others: ['s1', 's2', 's3'] },
    )
    expect(await left).toEqual([])
    expect(io.said.stderr).toBe(`  n1  dhcp 0.0s …
  n1  ${READY_LINE}
  simulated nodes ready: 0 of 3
  simulated nodes ready: 1 of 3
  simulated nodes ready: 3 of 3
`)
    expect(client.paths.find(path => path.startsWith('/api/v1/nodes '))).toBe(
      '/api/v1/nodes {"nodes":"s[1-3]","limit":50000}',
    )
  })
})

/** What a terminal would show in the end: it knows how to go up, and to clear what is below. */
function screen(text: string, columns: number): string[] {
  const rows: string[] = []
  let row = 0
  for (const part of text.split(/(.\[\d*[AJ]|\n)/)) {
    const [, count = '', what] = /^.\[(\d*)([AJ])$/.exec(part) ?? []
    if (what === 'A') row -= Number(count)
    else if (what === 'J') rows.splice(row)
    else if (part === '\n') row++
    else
      for (let from = 0; from < part.length; from += columns) {
        if (from > 0) row++
        rows[row] = part.slice(from, from + columns)
      }
  }
  return rows
}

describe('on a terminal', () => {
  const steps = [
    undefined,
    boot([['dhcp', 0]]),
    boot([
      ['dhcp', 0],
      ['loader', 1],
    ]),
    READY,
  ]

  it('a line per machine grows', async () => {
    const { io, left } = show(['n1', 'n2'], { boots: { n1: steps, n2: steps.toReversed() } }, { terminal: true })
    await vi.waitFor(() => expect(io.said.stderr).toContain('power on'))
    expect(io.said.stderr).toBe(`  n1  power on …\n  n2  ${READY_LINE}\n`)
    io.interrupt()
    await expect(left).rejects.toMatchObject({ code: 'ABORTED' })
  })

  it.for([200, 30, 20])('of %i columns it shows each machine once, however long its line', async columns => {
    const { io, left } = show(
      ['n1', 'n2'],
      { boots: { n1: steps, n2: [undefined, ...steps] } },
      { terminal: true, columns },
    )
    expect(await left).toEqual([])
    const rows = screen(io.said.stderr, columns)
    expect(rows.join('')).toBe(`  n1  ${READY_LINE}  n2  ${READY_LINE}`)
    expect(rows).toHaveLength(2 * Math.ceil((6 + READY_LINE.length) / columns))
  })

  it('simulated nodes are counted below', async () => {
    const { io, left } = show(
      ['n1'],
      { boots: { n1: steps }, simulated: [[], ['s1'], ['s1', 's2', 's3']] },
      { terminal: true, columns: 100, others: ['s1', 's2', 's3'] },
    )
    expect(await left).toEqual([])
    expect(screen(io.said.stderr, 100)).toEqual([`  n1  ${READY_LINE}`, '  simulated nodes ready: 3 of 3'])
  })
})

describe('it ends', () => {
  it('at once when nobody is waited for', async () => {
    const { io, left } = show([], {})
    expect(await left).toEqual([])
    expect(io.said.stderr).toBe('')
  })

  it('when the time is over, with those who are not ready', async () => {
    const { left } = show(
      ['n1', 'n2'],
      { boots: { n1: [READY], n2: [boot([['dhcp', 0]], 'no route')] } },
      { patience: -1 },
    )
    expect(await left).toEqual(['n2'])
    const { left: others } = show(
      ['n1'],
      { boots: { n1: [READY] }, simulated: [['s2']] },
      { patience: -1, others: ['s1', 's2', 's3'] },
    )
    expect(await others).toEqual(['s1', 's3'])
  })

  it('when somebody presses Ctrl-C', async () => {
    const { io, left } = show(['n1'], {})
    io.interrupt()
    await expect(left).rejects.toMatchObject({ code: 'ABORTED', message: 'interrupted' })
  })
})
