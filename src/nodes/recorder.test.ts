import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import { observedOf, report } from '../state/observed.ts'
import { openSqliteStore } from '../state/sqlite.ts'
import type { Change, NewEvent, Store } from '../state/store.ts'
import { BOOTS, Recorder } from './recorder.ts'
import { WAITS } from './phases.ts'
import { MachineFacts, type Sighting } from './reports.ts'

const [A, B] = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb']
const IMAGE = `sha256:${'1'.repeat(64)}`
const START = Date.parse('2026-03-01T12:00:00.000Z')

type Step = Extract<Sighting, { kind: 'phase' }>
type Status = Extract<Sighting, { kind: 'status' }>

/** A store in a directory that goes with the test, which can be told to fail, and counts what is written. */
class TestStore {
  readonly store: Store
  readonly commits: { changes: readonly Change[]; events: readonly NewEvent[] }[] = []
  /** Called before each commit; throws in its place. */
  before: () => void | Promise<void> = () => {}

  constructor(inner: Store) {
    this.store = new Proxy(inner, {
      get: (target, name) => {
        if (name === 'commit') return (...args: Parameters<Store['commit']>) => this.#commit(target, ...args)
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  async #commit(inner: Store, ...[changes, events]: Parameters<Store['commit']>): Promise<number> {
    await this.before()
    const revision = await inner.commit(changes, events)
    this.commits.push({ changes, events })
    return revision
  }
}

let dir: string
let world: TestStore
let store: Store
let recorder: Recorder
/** What the clock says. */
let now: number
let nodes: Set<string>

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-recorder-'))
  world = new TestStore(await openSqliteStore(join(dir, 'state.db')))
  store = world.store
  now = START
  nodes = new Set(['n1', 'n2', 'n3'])
  recorder = await load()
})
afterEach(async () => {
  await store.close()
  await rm(dir, { recursive: true, force: true })
})

const load = (): Promise<Recorder> =>
  Recorder.load(store, { now: () => new Date(now), isNode: name => nodes.has(name) })

const macOf = (node: string): string => `52:54:00:00:00:0${node.slice(1)}`
const at = (): string => new Date(now).toISOString()
const wait = (seconds: number): void => void (now += seconds * 1000)

const step = (phase: Step['phase'], more: Partial<Step> = {}): Step => {
  const node = more.node ?? 'n1'
  const id = phase === 'dhcp' ? {} : { boot: A }
  return { kind: 'phase', at: at(), server: '10.77.0.1', mac: macOf(node), node, ...id, phase, ...more }
}

const status = (more: Partial<Status> = {}): Status => {
  const node = more.node ?? 'n1'
  return {
    kind: 'status',
    at: at(),
    server: '10.77.0.1',
    mac: macOf(node),
    node,
    boot: A,
    image: IMAGE,
    kernel: '6.1',
    hostname: node,
    addresses: [],
    health: { status: 'ok', reason: '' },
    ...more,
  }
}

const take = (sightings: readonly Sighting[], heard = ''): Promise<void> =>
  recorder.take({ sightings: [...sightings], heard })

/** Ready, and heard. */
const up = (...names: string[]): Promise<void> =>
  take(
    names.flatMap(node => [step('ready', { node }), status({ node })]),
    names.join(','),
  )

/** Sweeps every second, as the server does. */
async function sweep(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    wait(1)
    await recorder.sweep()
  }
}

const events = async (after = 0) =>
  (await store.events({ after })).map(({ kind, nodes: of, trace, data }) => ({
    kind,
    nodes: of,
    ...(trace !== undefined && { trace }),
    ...(data !== undefined && { data }),
  }))
const kinds = async (after = 0): Promise<string[]> => (await events(after)).map(event => `${event.kind} ${event.nodes}`)

describe('a boot', () => {
  it('becomes observed state, a timeline and events', async () => {
    await take([step('dhcp')])
    wait(2)
    await take([step('loader', { image: IMAGE })])
    expect(await observedOf(store, 'n1')).toEqual({ boot: { value: 'loader', since: '2026-03-01T12:00:02.000Z' } })
    wait(20)
    await take([step('agent'), step('ready'), status()], 'n1')
    expect(await observedOf(store, 'n1')).toEqual({
      boot: { value: 'ready', since: '2026-03-01T12:00:22.000Z' },
      image: { value: IMAGE, since: '2026-03-01T12:00:22.000Z' },
      health: { value: 'ok', since: '2026-03-01T12:00:22.000Z' },
    })
    expect(await events()).toEqual([
      { kind: 'node.boot', nodes: 'n1', data: { phase: 'dhcp', at: '2026-03-01T12:00:00.000Z', server: '10.77.0.1' } },
      {
        kind: 'node.boot',
        nodes: 'n1',
        trace: A,
        data: { phase: 'loader', at: '2026-03-01T12:00:02.000Z', server: '10.77.0.1' },
      },
      { kind: 'node.observed', nodes: 'n1', data: { boot: 'ready', image: IMAGE, health: 'ok' } },
      {
        kind: 'node.boot',
        nodes: 'n1',
        trace: A,
        data: { phase: 'agent', at: '2026-03-01T12:00:22.000Z', server: '10.77.0.1' },
      },
      {
        kind: 'node.boot',
        nodes: 'n1',
        trace: A,
        data: { phase: 'ready', at: '2026-03-01T12:00:22.000Z', server: '10.77.0.1' },
      },
    ])
    const stored = await store.get(`${BOOTS}n1`)
    expect(JSON.parse(stored?.value ?? '')).toEqual(recorder.boots('n1'))
    expect(recorder.boots('n1').map(boot => boot.phases.map(({ phase }) => phase))).toEqual([
      ['dhcp', 'loader', 'agent', 'ready'],
    ])
  })

  it('tells how long each phase took', async () => {
    const told: string[] = []
    recorder.onPhase((phase, seconds) => told.push(`${phase} ${seconds}`))
    await take([step('dhcp')])
    wait(2)
    await take([step('loader')])
    wait(3.5)
    await take([step('kernel'), step('kernel')])
    expect(told).toEqual(['dhcp 2', 'loader 3.5'])
  })

  it('takes away what was true of the boot before', async () => {
    await up('n1')
    await report(store, 'n1', { config: { value: 'g7' }, power: { value: 'on' } }, { actor: 'test' }, new Date(now))
    await take([step('dhcp')])
    expect(await observedOf(store, 'n1')).toEqual({
      boot: { value: 'dhcp', since: at() },
      power: { value: 'on', since: at() },
    })
  })

  it('after another is ready with its own image, and is one boot', async () => {
    await up('n1')
    wait(3600)
    const other = `sha256:${'2'.repeat(64)}`
    await take([step('dhcp')])
    for (const phase of ['loader', 'kernel', 'agent', 'ready'] as const) {
      wait(5)
      await take([step(phase, { boot: B })])
    }
    expect(recorder.boots('n1').map(({ id, phases }) => [id, phases.length])).toEqual([
      [B, 5],
      [A, 1],
    ])
    // What ran before says nothing of what runs now.
    expect(await observedOf(store, 'n1')).toEqual({ boot: { value: 'ready', since: at() } })
    await take([status({ boot: B, image: other, health: { status: 'degraded', reason: 'slow disk' } })], 'n1')
    expect(await observedOf(store, 'n1')).toEqual({
      boot: { value: 'ready', since: at() },
      image: { value: other, since: at() },
      health: { value: 'degraded', reason: 'slow disk', since: at() },
    })
    expect(recorder.boots('n1')).toHaveLength(2)
  })

  it('that fails says why, and is cleared when it goes on', async () => {
    await take([step('fetch')])
    await take([step('failed', { detail: 'sha256 is wrong' })])
    expect((await observedOf(store, 'n1')).boot).toEqual({ value: 'failed', reason: 'sha256 is wrong', since: at() })
    expect((await events()).at(-1)).toEqual({
      kind: 'node.boot.failed',
      nodes: 'n1',
      trace: A,
      data: { phase: 'fetch', reason: 'sha256 is wrong', server: '10.77.0.1' },
    })
    wait(10)
    await take([step('fetch')])
    expect((await observedOf(store, 'n1')).boot).toEqual({ value: 'fetch', since: at() })
  })

  it('that had failed is still failed when an earlier phase is told late', async () => {
    await take([step('fetch'), step('failed', { detail: 'no route' })])
    await take([step('initrd', { at: new Date(now - 1000).toISOString() })])
    expect(recorder.boots('n1')[0]?.phases.map(({ phase }) => phase)).toEqual(['initrd', 'fetch'])
    expect((await observedOf(store, 'n1')).boot?.value).toBe('failed')
  })

  it('of which nothing new is said writes nothing', async () => {
    await take([step('loader')])
    const before = world.commits.length
    await take([step('loader'), step('loader')])
    await take([])
    await recorder.sweep()
    expect(world.commits).toHaveLength(before)
  })

  it('of a machine that is no node is not recorded', async () => {
    const { node: _, ...stranger } = step('loader')
    await take([stranger, step('loader', { node: 'gone' })], 'gone')
    expect(world.commits).toEqual([])
    expect(recorder.boots('gone')).toEqual([])
  })

  it('of a node that agents talk of is recorded, however we missed it', async () => {
    await take([status()], 'n1')
    expect(recorder.boots('n1')).toEqual([
      {
        id: A,
        mac: macOf('n1'),
        image: IMAGE,
        phases: [{ phase: 'ready', at: at() }],
        last: { at: at(), what: 'it is ready' },
      },
    ])
    expect(await observedOf(store, 'n1')).toMatchObject({
      boot: { value: 'ready' },
      image: { value: IMAGE },
      health: { value: 'ok' },
    })
  })

  it('whose end we missed is over when its agent speaks', async () => {
    await take([step('loader'), step('agent')])
    wait(5)
    await take([status()], 'n1')
    expect(recorder.boots('n1').map(({ phases }) => phases.map(({ phase }) => phase))).toEqual([
      ['loader', 'agent', 'ready'],
    ])
  })

  it('is not brought back by what was said before it, and told late', async () => {
    await up('n1')
    const late = status({ at: new Date(now + 1000).toISOString() })
    wait(60)
    await take([step('dhcp')])
    wait(2)
    await take([step('loader', { boot: B })])
    await take([late], 'n1')
    expect(recorder.boots('n1').map(({ id }) => id)).toEqual([B, A])
    expect(await observedOf(store, 'n1')).toEqual({ boot: { value: 'loader', since: at() } })
    await take([step('ready', { boot: B })])
    expect(recorder.boots('n1').map(({ id }) => id)).toEqual([B, A])
  })
})

describe('a node that was let in, and one that was not', () => {
  const asked = { server: '10.77.0.1', mac: macOf('n1'), node: 'n1', boot: A.repeat(2), address: '10.77.1.1' }

  it('are events', async () => {
    await take([
      { kind: 'enrolled', at: at(), ...asked },
      { kind: 'enrol-refused', at: at(), ...asked, reason: 'it is up' },
      { kind: 'enrolled', at: at(), ...asked, node: 'nobody' },
    ])
    const data = { mac: macOf('n1'), address: '10.77.1.1', server: '10.77.0.1' }
    const event = { nodes: 'n1', trace: A.repeat(2) }
    expect(await events()).toMatchObject([
      { kind: 'node.enrolled', ...event, data },
      { kind: 'node.enrol.refused', ...event, data: { ...data, reason: 'it is up' } },
    ])
  })
})

describe('many nodes', () => {
  it('are written together: ten thousand cost one write', async () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `c${index}`)
    nodes = new Set(names)
    await Promise.all([
      take(names.slice(0, 5000).map(node => step('loader', { node, mac: '52:54:00:00:00:00' }))),
      take(names.slice(5000).map(node => step('loader', { node, mac: '52:54:00:00:00:00' }))),
    ])
    expect(world.commits.map(({ changes, events: of }) => [changes.length, of.length])).toEqual([[20_000, 10_000]])
  })

  it('whose heartbeats say nothing new cost none', async () => {
    await up('n1', 'n2', 'n3')
    const before = world.commits.length
    for (let beat = 0; beat < 5; beat++) {
      wait(10)
      await take([status({ node: 'n2' })], 'n[1-3]')
      await recorder.sweep()
    }
    expect(world.commits).toHaveLength(before)
  })
})

/** Resolves when a commit has begun; it ends when it is let go. */
const held = (): { begun: Promise<void>; letGo: (error?: Error) => void } => {
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  world.before = () => {
    world.before = () => {}
    begun.resolve()
    return gate.promise
  }
  return { begun: begun.promise, letGo: error => (error === undefined ? gate.resolve() : gate.reject(error)) }
}

describe('while something is being written', () => {
  it('what else is said is written next, in order', async () => {
    const { begun, letGo } = held()
    const first = take([step('loader')])
    await begun
    const second = take([step('kernel')])
    const third = take([step('initrd'), step('loader', { node: 'n2' })])
    letGo()
    await Promise.all([first, second, third])
    expect(
      world.commits.map(({ events: of }) => of.map(({ nodes: name, data }) => [name, (data as Step).phase])),
    ).toEqual([
      [['n1', 'loader']],
      [
        ['n1', 'kernel'],
        ['n1', 'initrd'],
        ['n2', 'loader'],
      ],
    ])
  })

  it('whoever says the same waits until it is stored', async () => {
    const { begun, letGo } = held()
    const first = take([step('loader')])
    await begun
    let isStored = false
    const second = take([step('loader')]).then(() => (isStored = true))
    await new Promise(resolve => setImmediate(resolve))
    expect(isStored).toBe(false)
    letGo()
    await Promise.all([first, second])
    expect(world.commits).toHaveLength(1)
  })

  it('and that fails, those who said it know, and it is written with what comes next', async () => {
    const { begun, letGo } = held()
    const first = take([step('loader'), ...machine('525400aabbcc')])
    await begun
    const second = take([step('kernel')])
    letGo(new Error('disk full'))
    await expect(first).rejects.toThrow('disk full')
    await second
    expect(world.commits.map(({ events: of }) => of.map(event => `${event.kind} ${event.nodes}`))).toEqual([
      ['node.boot n1', 'node.boot n1', 'machine.discovered undefined'],
    ])
    expect((await observedOf(store, 'n1')).boot?.value).toBe('kernel')
    expect(JSON.parse((await store.get(`${BOOTS}n1`))?.value ?? '')).toEqual(recorder.boots('n1'))
  })

  it('and that fails, the same said again is stored after all', async () => {
    world.before = () => {
      world.before = () => {}
      throw new Error('disk full')
    }
    const batch = [step('loader'), status({ node: 'n2' }), ...machine('525400aabbcc')]
    await expect(take(batch, 'n2')).rejects.toThrow('disk full')
    expect(world.commits).toEqual([])
    await take(batch, 'n2')
    expect((await observedOf(store, 'n1')).boot?.value).toBe('loader')
    expect((await observedOf(store, 'n2')).health?.value).toBe('ok')
    expect(await store.get('machine/525400aabbcc')).toBeDefined()
  })

  it('and that fails, a sweep writes it', async () => {
    world.before = () => {
      world.before = () => {}
      throw new Error('disk full')
    }
    await expect(take([step('loader')])).rejects.toThrow('disk full')
    await recorder.sweep()
    expect((await observedOf(store, 'n1')).boot?.value).toBe('loader')
  })
})

/** Before each of the next commits, somebody else is quicker. */
const disturb = (times: number): void => {
  let left = times
  world.before = async () => {
    if (left-- <= 0) return
    const before = world.before
    world.before = () => {}
    await report(store, 'n1', { power: { value: left % 2 === 0 ? 'on' : 'off' } }, { actor: 'bmc' }, new Date(now))
    world.before = before
  }
}

describe('when somebody else writes about the same node', () => {
  it('neither overwrites the other', async () => {
    disturb(3)
    await take([step('loader')])
    expect(await observedOf(store, 'n1')).toEqual({
      boot: { value: 'loader', since: at() },
      power: { value: 'on', since: at() },
    })
    expect((await kinds()).filter(kind => kind === 'node.boot n1')).toHaveLength(1)
  })

  it('again and again, it is given up, and written later', async () => {
    disturb(10)
    await expect(take([step('loader')])).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    await recorder.sweep()
    expect((await observedOf(store, 'n1')).boot?.value).toBe('loader')
    expect((await kinds()).filter(kind => kind === 'node.boot n1')).toHaveLength(1)
  })
})

describe('silence', () => {
  it('is noticed after three heartbeats and a little, once', async () => {
    await up('n1', 'n2')
    const revision = await store.revision()
    for (let second = 0; second < 60; second += 10) {
      await sweep(10)
      await take([], 'n2')
    }
    expect(await events(revision)).toEqual([
      { kind: 'node.silent', nodes: 'n1', data: { since: new Date(START).toISOString() } },
    ])
    // Unknown, not bad: nobody can tell.
    expect(await observedOf(store, 'n1')).toEqual({
      boot: { value: 'ready', since: new Date(START).toISOString() },
      image: { value: IMAGE, since: new Date(START).toISOString() },
    })
    expect((await observedOf(store, 'n2')).health?.value).toBe('ok')
  })

  it('begins after 33 seconds', async () => {
    await up('n1')
    await sweep(32)
    expect(await kinds()).not.toContain('node.silent n1')
    await sweep(1)
    expect(await kinds()).toContain('node.silent n1')
  })

  it('ends with the next heartbeat, and everything is as it was', async () => {
    await up('n1')
    await take([status({ health: { status: 'degraded', reason: 'slow disk' } })], 'n1')
    await sweep(40)
    const revision = await store.revision()
    await take([], 'n1')
    expect(await events(revision)).toEqual([
      { kind: 'node.observed', nodes: 'n1', data: { health: 'degraded' } },
      { kind: 'node.heard', nodes: 'n1' },
    ])
    expect((await observedOf(store, 'n1')).health).toEqual({ value: 'degraded', reason: 'slow disk', since: at() })
    await sweep(40)
    expect((await kinds(revision)).filter(kind => kind === 'node.silent n1')).toHaveLength(1)
  })

  it('is none while a node boots', async () => {
    await up('n1')
    await sweep(20)
    // The last heartbeat may come in the same moment as the first of the boot.
    await take([step('dhcp')], 'n1')
    await sweep(60)
    expect(await kinds()).not.toContain('node.silent n1')
  })

  it('of a node that comes back with another boot ends when it is ready', async () => {
    await up('n1')
    await sweep(40)
    const revision = await store.revision()
    await take([step('loader', { boot: B })])
    await take([step('ready', { boot: B })])
    expect(await kinds(revision)).toEqual(['node.boot n1', 'node.boot n1', 'node.heard n1'])
    expect((await observedOf(store, 'n1')).health).toBeUndefined()
    expect(recorder.boots('n1').map(({ id }) => id)).toEqual([B, A])
  })

  it('is none of theirs when we ourselves were held up', async () => {
    await up('n1')
    await sweep(10)
    wait(600)
    await recorder.sweep()
    await take([], 'n1')
    await sweep(20)
    expect(await kinds()).not.toContain('node.silent n1')
    await sweep(13)
    expect(await kinds()).toContain('node.silent n1')
  })

  it('of a node that was removed is nobody’s business', async () => {
    await up('n1', 'n2')
    nodes.delete('n1')
    const revision = await store.revision()
    await sweep(60)
    await take([step('loader'), status()], 'n[1-2]')
    expect(await kinds(revision)).toEqual(['node.silent n2', 'node.observed n2', 'node.heard n2'])
  })

  it('is told of nobody who was only said to be there', async () => {
    await take([], 'n[1-3]')
    await sweep(60)
    expect(world.commits).toEqual([])
  })
})

describe('a boot that is stuck', () => {
  it.for(Object.entries(WAITS) as ['dhcp', (typeof WAITS)['dhcp']][])(
    'in %s is told once, with what was seen last',
    async ([phase, { seconds, until }]) => {
      await take([step(phase, { detail: 'the light was on' })])
      for (let left = seconds - 1; left > 0; left -= 4) {
        wait(Math.min(4, left))
        await recorder.sweep()
      }
      expect(await kinds()).toEqual(['node.boot n1'])
      await sweep(5)
      const reason = `stuck in ${phase}: for ${seconds} s nothing was seen that says that ${until}; last seen: the light was on`
      expect((await events()).slice(1)).toEqual([
        {
          kind: 'node.boot.failed',
          nodes: 'n1',
          ...(phase !== 'dhcp' && { trace: A }),
          data: { phase, reason, server: '' },
        },
      ])
      expect((await observedOf(store, 'n1')).boot).toMatchObject({ value: 'failed', reason })
      expect(recorder.boots('n1')[0]?.failed?.reason).toBe(reason)
    },
  )

  it('is so no longer when it goes on', async () => {
    await take([step('root')])
    await sweep(5)
    for (let second = 0; second < 300; second += 5) {
      wait(5)
      await recorder.sweep()
    }
    expect((await observedOf(store, 'n1')).boot?.value).toBe('failed')
    await take([step('agent')])
    expect((await observedOf(store, 'n1')).boot).toEqual({ value: 'agent', since: at() })
    expect(recorder.boots('n1')[0]?.failed).toBeUndefined()
    await take([step('ready')])
    await sweep(10)
    expect((await kinds()).filter(kind => kind.startsWith('node.boot.failed'))).toHaveLength(1)
  })

  it('because its checks fail is told once, however often its agent says so', async () => {
    await take([step('agent')])
    for (let second = 0; second < 400; second += 4) {
      wait(4)
      await take([step('agent', { detail: 'not ready: no GPU' })])
      await recorder.sweep()
    }
    expect(await kinds()).toEqual(['node.boot n1', 'node.boot n1', 'node.boot.failed n1'])
    expect((await observedOf(store, 'n1')).boot?.reason).toBe(
      'stuck in agent: for 300 s nothing was seen that says that its health checks pass; last seen: not ready: no GPU',
    )
    await take([step('ready'), status()], 'n1')
    expect(await observedOf(store, 'n1')).toMatchObject({ boot: { value: 'ready' }, health: { value: 'ok' } })
  })

  it('of a node that was removed is nobody’s business', async () => {
    await take([step('loader')])
    nodes.delete('n1')
    for (let second = 0; second < 600; second += 5) {
      wait(5)
      await recorder.sweep()
    }
    expect(world.commits).toHaveLength(1)
  })

  it('while we were away is not until we have waited ourselves', async () => {
    await take([step('loader')])
    wait(5)
    await recorder.sweep()
    wait(3600)
    await recorder.sweep()
    expect(await kinds()).toEqual(['node.boot n1'])
    for (let second = 0; second < 300; second += 5) {
      wait(5)
      await recorder.sweep()
    }
    expect(await kinds()).toEqual(['node.boot n1', 'node.boot.failed n1'])
  })
})

describe('after a restart', () => {
  it('a boot goes on where it was', async () => {
    await take([step('dhcp'), step('loader'), step('kernel')])
    const before = recorder.boots('n1')
    wait(30)
    recorder = await load()
    expect(recorder.boots('n1')).toEqual(before)
    const told: string[] = []
    recorder.onPhase((phase, seconds) => told.push(`${phase} ${seconds}`))
    await take([step('agent')])
    expect(told).toEqual(['kernel 30'])
    await take([step('ready'), status()], 'n1')
    expect(recorder.boots('n1')).toHaveLength(1)
    expect(recorder.boots('n1')[0]?.phases.map(({ phase }) => phase)).toEqual([
      'dhcp',
      'loader',
      'kernel',
      'agent',
      'ready',
    ])
  })

  it('however long it took, nobody is silent and nothing is stuck until we have listened', async () => {
    await up('n1')
    await take([step('loader', { node: 'n2' })])
    const revision = await store.revision()
    wait(7200)
    recorder = await load()
    await sweep(32)
    expect(await kinds(revision)).toEqual([])
    await sweep(1)
    expect(await kinds(revision)).toEqual(['node.silent n1'])
    for (let second = 33; second < 300; second += 3) {
      wait(3)
      await recorder.sweep()
    }
    expect(await kinds(revision)).toEqual(['node.silent n1', 'node.boot.failed n2'])
  })

  it('heartbeats that say nothing new are enough', async () => {
    await up('n1')
    recorder = await load()
    const revision = await store.revision()
    for (let beat = 0; beat < 8; beat++) {
      await sweep(10)
      await take([], 'n1')
    }
    expect(await kinds(revision)).toEqual([])
  })

  it('a node that had been silent is well again when its agent tells all', async () => {
    await up('n1')
    await sweep(40)
    recorder = await load()
    await take([], 'n1')
    expect((await observedOf(store, 'n1')).health).toBeUndefined()
    await take([status()], 'n1')
    expect((await observedOf(store, 'n1')).health?.value).toBe('ok')
    expect(recorder.boots('n1')).toHaveLength(1)
  })

  it('machines are still known', async () => {
    await take(machine('525400aabbcc'))
    const before = recorder.machines()
    recorder = await load()
    expect(recorder.machines()).toEqual(before)
  })
})

const machine = (id: string, more: object = {}): Sighting[] => [
  {
    kind: 'machine',
    at: at(),
    server: '10.77.0.1',
    facts: MachineFacts.parse({ mac: id.replaceAll(/(..)(?!$)/g, '$1:'), ...more }),
  },
]

describe('machines that nobody knows', () => {
  it('are kept, with an event when something is new', async () => {
    await take(machine('525400aabbcc', { serial: 'S1' }))
    wait(60)
    await take(machine('525400aabbcc', { serial: 'S1' }))
    await take(machine('525400aabbcc', { serial: 'S2' }))
    expect(recorder.machine('525400aabbcc')).toMatchObject({
      mac: '52:54:00:aa:bb:cc',
      facts: { serial: 'S2' },
      firstSeen: '2026-03-01T12:00:00.000Z',
      lastSeen: '2026-03-01T12:01:00.000Z',
    })
    const data = { id: '525400aabbcc', mac: '52:54:00:aa:bb:cc', neighbours: [], server: '10.77.0.1' }
    expect(await events()).toEqual([
      { kind: 'machine.discovered', nodes: undefined, data },
      { kind: 'machine.discovered', nodes: undefined, data },
    ])
  })

  it('can be forgotten, and are discovered anew', async () => {
    await take(machine('525400aabbcc'))
    await recorder.forget('525400aabbcc', { actor: 'olga' })
    expect(recorder.machines()).toEqual([])
    expect(await store.get('machine/525400aabbcc')).toBeUndefined()
    wait(60)
    await take(machine('525400aabbcc'))
    expect(recorder.machine('525400aabbcc').firstSeen).toBe('2026-03-01T12:01:00.000Z')
  })

  it('are forgotten even while they are about to be written', async () => {
    const taken = take(machine('525400aabbcc'))
    await recorder.forget('525400aabbcc', { actor: 'olga' })
    await taken
    expect(await store.get('machine/525400aabbcc')).toBeUndefined()
  })

  it('that never were cannot be asked for nor forgotten', async () => {
    const unknown = { code: 'MACHINE_UNKNOWN', message: 'no machine 525400aabbcc was discovered' }
    expect(() => recorder.machine('525400aabbcc')).toThrow(expect.objectContaining(unknown))
    await expect(recorder.forget('525400aabbcc', { actor: 'olga' })).rejects.toMatchObject(unknown)
  })
})

describe('a batch that cannot be read', () => {
  it('is refused as a whole', async () => {
    const failure = take([step('loader')], 'n[1-')
    await expect(failure).rejects.toThrow(MusterError)
    await expect(failure).rejects.toMatchObject({ code: 'NODESET_INVALID' })
    await recorder.sweep()
    expect(recorder.boots('n1')).toEqual([])
    expect(world.commits).toEqual([])
  })
})
