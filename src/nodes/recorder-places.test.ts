import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSqliteStore } from '../state/sqlite.ts'
import type { Store } from '../state/store.ts'
import type { PlaceSite } from './place-book.ts'
import { Recorder } from './recorder.ts'
import { MachineFacts, type Sighting } from './reports.ts'

const [A, B] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b']
const START = Date.parse('2026-03-01T12:00:00.000Z')
const SERVER = '10.77.0.1'

/** n1 and n2 at the first two ports of sw1, whose option 82 is read; n3 at the first of sw2, whose is not. */
const SITE: PlaceSite = {
  switches: { sw1: { circuit: 'cisco', port: '{{ port }}' } },
  at: place => {
    const node = { 'sw1 1': 'n1', 'sw1 2': 'n2', 'sw2 1': 'n3' }[place]
    return node === undefined ? undefined : { node }
  },
  isFixed: () => false,
  waiting: mac => waiting[mac],
}

let waiting: Record<string, { node: string; holder: string }>
let dir: string
let store: Store
let recorder: Recorder
let now: number

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-places-'))
  store = await openSqliteStore(join(dir, 'state.db'))
  now = START
  waiting = {}
  recorder = await load()
})
afterEach(async () => {
  await store.close()
  await rm(dir, { recursive: true, force: true })
})

const load = (): Promise<Recorder> =>
  Recorder.load(store, { now: () => new Date(now), isNode: name => /^n[123]$/.test(name), site: () => SITE })
const at = (): string => new Date(now).toISOString()
const take = (sightings: readonly Sighting[], heard = ''): Promise<void> =>
  recorder.take({ sightings: [...sightings], heard })

/** Through this port of sw1, as Cisco says it. */
const relayed = (mac: string, port: number, remote = 'sw1'): Sighting => ({
  kind: 'relayed',
  at: at(),
  server: SERVER,
  mac,
  circuit: `00040064010${port}`,
  remote: Buffer.from(remote).toString('hex'),
})

const tlv = (type: number, value: Buffer): Buffer => {
  const header = Buffer.alloc(2)
  header.writeUInt16BE((type << 9) | value.length)
  return Buffer.concat([header, value])
}
const frame = (name: string, port: string): string =>
  Buffer.concat([
    Buffer.from('0180c200000e52540000000188cc', 'hex'),
    tlv(1, Buffer.from(`\u0007${name}`)),
    tlv(2, Buffer.from(`\u0005${port}`)),
    tlv(5, Buffer.from(name)),
    tlv(0, Buffer.alloc(0)),
  ]).toString('hex')

/** A machine that runs the discovery system, and what each of its interfaces hears. */
const discovered = (mac: string, heard: Record<string, [name: string, port: string]> = {}): Sighting => ({
  kind: 'machine',
  at: at(),
  server: SERVER,
  facts: MachineFacts.parse({
    mac,
    macs: [
      { name: 'eth0', mac, link: true },
      { name: 'eth1', mac: '52:54:00:00:01:00', link: true },
    ],
    lldp: Object.entries(heard).map(([name, said]) => ({ interface: name, frame: frame(...said) })),
  }),
})

/** A machine that is no node asks for its script. */
const starts = (mac: string): Sighting => ({ kind: 'phase', at: at(), server: SERVER, mac, phase: 'loader' })

/** Ready as this node, and heard. */
const up = (node: string, mac: string): Promise<void> =>
  take([{ kind: 'phase', at: at(), server: SERVER, mac, node, boot: 'aaaaaaaaaaaaaaaa', phase: 'ready' }], node)

const sweep = async (seconds: number): Promise<void> => {
  for (let second = 0; second < seconds; second += 4) {
    now += 4000
    await recorder.sweep()
  }
}

const stored = async (key: string): Promise<unknown> => {
  const entry = await store.get(key)
  return entry === undefined ? undefined : (JSON.parse(entry.value) as unknown)
}
/** Machines that have not booted since n1 has changed machines. */
const running = (): unknown => recorder.swapOf('n1')?.running
const kinds = async (): Promise<string[]> =>
  (await store.events({ after: 0 }))
    .filter(({ kind }) => !['node.boot', 'node.observed', 'machine.discovered'].includes(kind))
    .map(({ kind, nodes }) => `${kind} ${nodes}`)

describe('what a switch says over DHCP', () => {
  it('is a place, which is kept', async () => {
    await take([relayed(A, 1)])
    const place = { switch: 'sw1', port: '1', source: 'option 82', since: '2026-03-01T12:00:00.000Z' }
    expect(await stored(`place/${A}`)).toEqual(place)
    expect(await kinds()).toEqual(['machine.placed n1'])
    recorder = await load()
    expect(recorder.place(A)).toEqual(place)
    await take([relayed(A, 1)])
    expect(await kinds()).toEqual(['machine.placed n1'])
  })

  it('is nothing where the site does not know the switch', async () => {
    await take([relayed(A, 1, 'sw7')])
    expect(await store.list('place/')).toEqual([])
  })

  it('shows machines that have said nothing of themselves', async () => {
    await take([relayed(A, 7)])
    expect(recorder.machines()).toMatchObject([{ id: '52540000000a', mac: A, neighbours: [] }])
    expect(recorder.machine('52540000000a').mac).toBe(A)
    await take([discovered(A)])
    expect(recorder.machines()).toHaveLength(1)
  })
})

describe('what a machine hears of its switch', () => {
  it('is its place: at the interface it booted from', async () => {
    await take([discovered(A, { eth1: ['sw2', '9'], eth0: ['sw2', '1'] })])
    expect(await stored(`place/${A}`)).toMatchObject({ switch: 'sw2', port: '1', source: 'LLDP' })
    expect(await kinds()).toEqual(['machine.placed n3'])
  })

  it('is no place where it could be either of two', async () => {
    const sighting = discovered(A, { eth1: ['sw2', '9'], eth2: ['sw2', '1'] })
    await take([sighting])
    expect(await store.list('place/')).toEqual([])
  })
})

describe('two machines at one place', () => {
  it('the one that is up stays the node; the other has its turn when that is gone for long', async () => {
    await take([relayed(A, 1)])
    await up('n1', A)
    await take([relayed(B, 1)])
    expect(recorder.place(B)?.waits).toBe(A)
    expect(await kinds()).toEqual(['machine.placed n1', 'node.place.conflict n1'])
    // It goes on saying that it is there.
    await take([discovered(B)], 'n1')
    expect(recorder.place(B)?.waits).toBe(A)
    // It may only have restarted.
    await sweep(60)
    await take([discovered(B)])
    expect(recorder.place(B)?.waits).toBe(A)
    await sweep(15 * 60)
    await take([discovered(B)])
    expect([recorder.place(B)?.waits, recorder.place(A)]).toEqual([undefined, undefined])
    expect((await kinds()).slice(2)).toEqual(['node.silent n1', 'node.replaced n1'])
    expect(await stored(`place/${A}`)).toBeUndefined()
  })

  it('the other has its turn as soon as that is silent when it is switched on anew', async () => {
    await take([relayed(A, 1)])
    await up('n1', A)
    await take([relayed(B, 1)])
    await sweep(60)
    await take([relayed(B, 1)])
    expect([recorder.place(B)?.waits, recorder.place(A)]).toEqual([undefined, undefined])
  })

  it('also where nobody but the machine says where it is', async () => {
    await take([discovered(A, { eth0: ['sw2', '1'] })])
    await up('n3', A)
    await take([discovered(B, { eth0: ['sw2', '1'] })])
    await take([starts(B)], 'n3')
    expect(recorder.place(B)?.waits).toBe(A)
    await sweep(60)
    await take([starts(B)])
    expect([recorder.place(B)?.waits, recorder.place(A)]).toEqual([undefined, undefined])
    expect(await kinds()).toEqual(['machine.placed n3', 'node.place.conflict n3', 'node.silent n3', 'node.replaced n3'])
  })

  it('after a restart of ours whoever was up counts as up, except against a person', async () => {
    await take([relayed(A, 1)])
    const health = { status: 'ok', reason: '' } as const
    const status = { hostname: 'n1', addresses: [], kernel: '6.1', health }
    const boot = 'aaaaaaaaaaaaaaaa'
    await take([{ kind: 'status', at: at(), server: SERVER, mac: A, node: 'n1', boot, ...status }], 'n1')
    recorder = await load()
    await take([relayed(B, 1)])
    expect(recorder.place(B)?.waits).toBe(A)
    const claim = { mac: B, switch: 'sw1', port: '1', source: 'operator', at: at() }
    await recorder.put([claim], { kind: 'machine.placed', actor: 'olga' })
    expect([recorder.place(B)?.waits, recorder.place(A)]).toEqual([undefined, undefined])
    // Once it was heard, nobody takes it away.
    await take([], 'n1')
    await recorder.put([{ ...claim, mac: '52:54:00:00:00:0c' }], { kind: 'machine.placed', actor: 'olga' })
    expect(recorder.place('52:54:00:00:00:0c')?.waits).toBe(A)
  })
})

describe('forgetting a machine', () => {
  it('leaves its place to one that runs as a node', async () => {
    await take([relayed(A, 1), relayed(B, 2)])
    await up('n1', A)
    await recorder.forget('52540000000a', { actor: 'olga' })
    await recorder.forget('52540000000b', { actor: 'olga' })
    expect(await stored(`place/${A}`)).toMatchObject({ port: '1' })
    expect(await stored(`place/${B}`)).toBeUndefined()
  })
})

describe('nodes that change machines', () => {
  const actor = { name: 'olga', from: '10.0.0.1' }

  it('do so when their machine boots, if it was up', async () => {
    await up('n2', B)
    await recorder.swap({ node: 'n1', with: 'n2', why: 'memory errors', actor })
    const swap = {
      node: 'n1',
      with: 'n2',
      by: 'olga',
      at: '2026-03-01T12:00:00.000Z',
      why: 'memory errors',
      isActive: true,
    }
    expect(await stored('swap/n1')).toEqual({ ...swap, running: { [B]: 'n2' } })
    await take([{ kind: 'phase', at: at(), server: SERVER, mac: B, node: 'n2', phase: 'dhcp' }])
    expect(await stored('swap/n1')).toEqual({ ...swap, running: {} })
    recorder = await load()
    expect(recorder.swapOf('n2')).toEqual({ ...swap, running: {} })
    expect(await kinds()).toEqual(['node.swapped n1,n2', 'node.swap.booted n1,n2'])
  })

  describe('do so although the machine of one never boots again', () => {
    /** B waits for n1, which A runs as. */
    beforeEach(async () => {
      waiting = { [B]: { node: 'n1', holder: A } }
      await up('n1', A)
      await recorder.swap({ node: 'n1', with: 'n2', actor })
      await take([discovered(B)], 'n1')
    })

    it('once it is silent, when the other is switched on', async () => {
      await take([starts(B)], 'n1')
      expect(running()).toEqual({ [A]: 'n1' })
      await sweep(60)
      expect(running()).toEqual({ [A]: 'n1' })
      await take([starts(B)])
      expect(running()).toEqual({})
      expect(await kinds()).toEqual(['node.swapped n1,n2', 'node.silent n1', 'node.swap.gone n1,n2'])
    })

    it('once it was silent for long, when the other waits', async () => {
      await sweep(60)
      await take([discovered(B)])
      expect(running()).toEqual({ [A]: 'n1' })
      await sweep(15 * 60)
      await take([discovered(B)])
      expect(running()).toEqual({})
    })
  })

  it('have their own again when it is taken back', async () => {
    await recorder.swap({ node: 'n1', with: 'n2', actor })
    await up('n1', B)
    expect(await recorder.undoSwap({ node: 'n2', actor })).toMatchObject({ isActive: false, running: { [B]: 'n1' } })
    await take([relayed(B, 2)])
    expect(await stored('swap/n1')).toBeUndefined()
    expect(recorder.swapOf('n1')).toBeUndefined()
  })
})
