import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BootId, Heartbeat, MachineFacts, PhaseReport, Sighting, SightingBatch } from './reports.ts'

const BOOT = '0123456789abcdef'
const MAC = '52:54:00:00:00:01'
const IMAGE = `sha256:${'1'.repeat(64)}`

/** The paths that are not right. */
const wrong = (schema: { safeParse: (value: unknown) => { error?: unknown } }, value: unknown): string[] => {
  const { error } = schema.safeParse(value) as { error?: { issues: { path: PropertyKey[] }[] } }
  return error?.issues.map(({ path }) => path.join('.')) ?? []
}

describe('the id of a boot', () => {
  it.for([
    [BOOT, true],
    ['0123456789ABCDEF', false],
    ['0123456789abcde', false],
    ['0123456789abcdef0', false],
    ['', false],
    ['0123456789abcde/', false],
    ['0123456789abcdef\n', false],
  ] as const)('%j: %s', ([text, isOne]) => {
    expect(BootId.safeParse(text).success).toBe(isOne)
  })
})

const ago = (seconds: unknown): unknown =>
  PhaseReport.safeParse({ boot: BOOT, mac: MAC, phase: 'agent', ago: seconds }).data?.ago

describe('a report of a phase', () => {
  it('says which boot, which machine, which phase', () => {
    expect(PhaseReport.parse({ boot: BOOT, mac: '52-54-00-00-00-01', phase: 'fetch' })).toEqual({
      boot: BOOT,
      mac: MAC,
      phase: 'fetch',
      ago: 0,
    })
    expect(
      PhaseReport.parse({ boot: BOOT, mac: MAC, phase: 'failed', ago: 1.25, detail: 'no route', more: 1 }),
    ).toEqual({ boot: BOOT, mac: MAC, phase: 'failed', ago: 1.25, detail: 'no route' })
  })

  it('is of a phase that nodes themselves can know of', () => {
    const taken = ['dhcp', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready', 'failed', 'other'].filter(
      phase => PhaseReport.safeParse({ boot: BOOT, mac: MAC, phase }).success,
    )
    expect(taken).toEqual(['initrd', 'fetch', 'root', 'agent', 'ready', 'failed'])
  })

  it('that could not be told for days is told all the same', () => {
    expect(ago(90_000)).toBe(90_000)
    expect(ago(1e12)).toBe(30 * 86_400)
    expect(ago(-1)).toBeUndefined()
    expect(ago('5')).toBeUndefined()
    expect(ago(Number.NaN)).toBeUndefined()
    expect(ago(Number.POSITIVE_INFINITY)).toBeUndefined()
  })

  it.for([
    ['no object', 'rubbish', ['']],
    ['nothing at all', {}, ['boot', 'mac', 'phase']],
    ['a boot that is none', { boot: 'x', mac: MAC, phase: 'root' }, ['boot']],
    ['a MAC that is none', { boot: BOOT, mac: 'x', phase: 'root' }, ['mac']],
    ['words that are none', { boot: BOOT, mac: MAC, phase: 'root', detail: { a: 1 } }, ['detail']],
  ] as const)('is none with %s', ([, value, paths]) => {
    expect(wrong(PhaseReport, value)).toEqual(paths)
  })
})

const detail = (text: string): string =>
  PhaseReport.parse({ boot: BOOT, mac: MAC, phase: 'failed', detail: text }).detail ?? ''

describe('words of a node', () => {
  it.for([
    ['Größe: 5 µs', 'Größe: 5 µs'],
    ['a\nb\tc\0d', 'a?b?c?d'],
    ['\u001b[2Jgone', '?[2Jgone'],
    ['\u009b31m', '?31m'],
    ['\ud800half', '\ufffdhalf'],
    ['x'.repeat(5000), 'x'.repeat(500)],
    ['', ''],
  ] as const)('%j become %j', ([said, kept]) => {
    expect(detail(said)).toBe(kept)
  })

  it('are never longer than they may be, and never move a cursor', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 3000 }), text => {
        const kept = detail(text)
        expect(kept.length).toBeLessThanOrEqual(500)
        expect(kept.isWellFormed()).toBe(true)
        expect(kept).not.toMatch(/\p{Cc}/u)
        expect(detail(kept)).toBe(kept)
      }),
    )
  })
})

describe('a heartbeat', () => {
  it('needs to say hardly anything', () => {
    expect(Heartbeat.parse({ boot: BOOT, mac: MAC })).toEqual({
      boot: BOOT,
      mac: MAC,
      node: '',
      hostname: '',
      kernel: '',
      addresses: [],
      health: { status: 'ok', reason: '' },
    })
  })

  it('is what the agent says', () => {
    const said = {
      boot: BOOT,
      mac: MAC,
      node: 'n001',
      hostname: 'n001',
      image: IMAGE,
      name: 'compute',
      inputs: '',
      commit: '',
      kernel: '6.1.0-30-amd64',
      bootid: '5d1f1d1c-0000-4000-8000-000000000000',
      uptime: 12.5,
      addresses: ['10.77.1.1/16'],
      health: { status: 'bad', reason: 'gpu: only 3 of 4' },
    }
    const { name: _, inputs: __, commit: ___, bootid: ____, ...kept } = said
    expect(Heartbeat.parse(said)).toEqual(kept)
  })

  it('of a node that does not know its image says nothing of it', () => {
    expect(Heartbeat.parse({ boot: BOOT, mac: MAC, image: '' }).image).toBeUndefined()
    expect(wrong(Heartbeat, { boot: BOOT, mac: MAC, image: 'compute' })).toEqual(['image'])
  })

  it('of a node with hundreds of addresses and failed checks is heard', () => {
    const reason = Array.from({ length: 100 }, (_, index) => `check${index}: ${'x'.repeat(160)}`).join('; ')
    const addresses = Array.from({ length: 300 }, (_, index) => `10.88.0.${index}/32`)
    const beat = Heartbeat.parse({ boot: BOOT, mac: MAC, addresses, health: { status: 'bad', reason } })
    expect(beat.health.reason).toBe(reason.slice(0, 500))
    expect(beat.addresses).toEqual(addresses.slice(0, 32))
  })

  it('has a health that is known', () => {
    expect(wrong(Heartbeat, { boot: BOOT, mac: MAC, health: { status: 'fine' } })).toEqual(['health.status'])
  })
})

/** Three hundred of them. */
const of = (item: object): object[] => Array.from({ length: 300 }, () => item)

describe('the facts of a machine', () => {
  it('need to be hardly any', () => {
    expect(MachineFacts.parse({ mac: MAC })).toEqual({
      mac: MAC,
      macs: [],
      lldp: [],
      uuid: '',
      serial: '',
      vendor: '',
      product: '',
      cpu: { model: '', count: 0 },
      memory: 0,
      disks: [],
    })
  })

  it('may hold interfaces of InfiniBand, whose addresses have twenty bytes', () => {
    const mac = '00:00:10:87:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:5f:a9:c4'
    const facts = MachineFacts.parse({ mac: MAC, macs: [{ name: 'ib0', mac, link: true, speed: 200_000 }] })
    expect(facts.macs).toEqual([{ name: 'ib0', mac, link: true, speed: 200_000 }])
  })

  it('are cut off where there are too many', () => {
    const facts = MachineFacts.parse({
      mac: MAC,
      macs: of({ name: 'eth0', mac: MAC }),
      lldp: of({ interface: 'eth0', frame: 'ff' }),
      disks: of({ name: 'sda' }),
    })
    expect([facts.macs.length, facts.lldp.length, facts.disks.length]).toEqual([64, 64, 256])
  })

  it.for([
    ['a frame that is no hex', { lldp: [{ interface: 'eth0', frame: 'xyz' }] }, 'lldp.0.frame'],
    ['half a byte', { lldp: [{ interface: 'eth0', frame: 'fff' }] }, 'lldp.0.frame'],
    ['a frame that no network carries', { lldp: [{ interface: 'eth0', frame: 'ff'.repeat(2001) }] }, 'lldp.0.frame'],
    ['half a processor', { cpu: { count: 1.5 } }, 'cpu.count'],
    ['less than no memory', { memory: -1 }, 'memory'],
    ['a disk without a name', { disks: [{ size: 1 }] }, 'disks.0.name'],
    ['a boot that is none', { boot: 'x' }, 'boot'],
  ] as const)('are none with %s', ([, more, path]) => {
    expect(wrong(MachineFacts, { mac: MAC, ...more })).toEqual([path])
  })

  it('are small, whatever a machine says', () => {
    const text = fc.string({ maxLength: 400 })
    const said = fc.record({
      mac: fc.constant(MAC),
      uuid: text,
      serial: text,
      vendor: text,
      product: text,
      macs: fc.array(fc.record({ name: text, mac: text }), { maxLength: 200 }),
      disks: fc.array(fc.record({ name: text, size: fc.nat(), model: text }), { maxLength: 400 }),
      cpu: fc.record({ model: text, count: fc.nat(1024) }),
      bmc: fc.oneof(fc.constant(null), fc.record({ address: text, mac: text })),
    })
    fc.assert(
      fc.property(said, value => {
        expect(JSON.stringify(MachineFacts.parse(value)).length).toBeLessThan(150_000)
      }),
      { numRuns: 30 },
    )
  })
})

describe('what boot servers hand on', () => {
  const at = '2026-03-01T12:00:00.000Z'

  it.for<[string, unknown]>([
    ['a DHCP request', { kind: 'phase', at, server: '10.77.0.1', mac: MAC, node: 'n1', phase: 'dhcp' }],
    ['a step of a boot', { kind: 'phase', at, server: '', mac: MAC, boot: BOOT, phase: 'loader', image: IMAGE }],
    [
      'how a node is',
      {
        kind: 'status',
        at,
        server: '10.77.0.1',
        mac: MAC,
        node: 'n1',
        boot: BOOT,
        kernel: '6.1',
        hostname: 'n1',
        addresses: [],
        health: { status: 'ok', reason: '' },
      },
    ],
    ['a machine', { kind: 'machine', at, server: '10.77.0.1', facts: MachineFacts.parse({ mac: MAC }) }],
  ])('%s arrives as it was sent', ([, sighting]) => {
    expect(SightingBatch.parse({ sightings: [sighting], heard: 'n[1-3]' })).toEqual({
      sightings: [sighting],
      heard: 'n[1-3]',
    })
  })

  it('is what nodes said, after it was cut off', () => {
    const said = 'x'.repeat(5000)
    const { detail } = PhaseReport.parse({ boot: BOOT, mac: MAC, phase: 'failed', detail: said })
    const { kernel, hostname, addresses, health } = Heartbeat.parse({
      boot: BOOT,
      mac: MAC,
      kernel: said,
      hostname: said,
      addresses: Array.from({ length: 100 }, () => said),
      health: { status: 'bad', reason: said },
    })
    const from = { at, server: '10.77.0.1', mac: MAC, node: 'n1', boot: BOOT }
    expect(wrong(Sighting, { kind: 'phase', ...from, phase: 'failed', detail })).toEqual([])
    expect(wrong(Sighting, { kind: 'status', ...from, kernel, hostname, addresses, health })).toEqual([])
  })

  it.for([
    ['of a kind nobody knows', { kind: 'other' }, 'kind'],
    ['with more than belongs to it', { kind: 'phase', at, server: '', mac: MAC, phase: 'dhcp', more: 1 }, ''],
    ['at no time', { kind: 'phase', at: 'now', server: '', mac: MAC, phase: 'dhcp' }, 'at'],
    [
      'with too many words',
      { kind: 'phase', at, server: '', mac: MAC, phase: 'dhcp', detail: 'x'.repeat(501) },
      'detail',
    ],
  ] as const)('is refused %s', ([, sighting, path]) => {
    expect(wrong(Sighting, sighting)).toEqual([path])
  })

  it('is refused when it is too much at once', () => {
    const sighting = { kind: 'phase', at, server: '', mac: MAC, phase: 'dhcp' }
    const batch = (count: number, heard = '') => ({ sightings: Array.from({ length: count }, () => sighting), heard })
    expect(wrong(SightingBatch, batch(10_000))).toEqual([])
    expect(wrong(SightingBatch, batch(10_001))).toEqual(['sightings'])
    expect(wrong(SightingBatch, batch(0, 'n'.repeat(1_000_001)))).toEqual(['heard'])
  })
})
