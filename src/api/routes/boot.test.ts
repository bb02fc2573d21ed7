import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { operator } from '../../control/testing.ts'
import { NO_ROOTS, publishImage } from '../../images/store/testing.ts'
import type { SightingBatch } from '../../nodes/reports.ts'
import { BootExplanation, ProblemReply, TimelineReply } from '../schemas.ts'
import { type Reply, type TestServer, startTestServer } from '../testing.ts'

const BOOT = '0123456789abcdef'
const MAC = '52:54:00:00:00:01'
const AT = '2026-03-01T12:00:00.000Z'

let server: TestServer
let token: string
/** The revision before the test. */
let seen: number

beforeAll(async () => {
  server = await startTestServer()
  token = await server.token('operator', 'olga')
  await server.control.apply(operator)
})
afterAll(() => server[Symbol.asyncDispose]())
beforeEach(async () => void (seen = await server.store.revision()))
afterEach(async () => {
  for (const { digest } of await server.images.list()) await server.images.remove(digest, NO_ROOTS)
  for (const { key } of await server.store.list('place/'))
    await server.store.commit([{ key, value: null }], [{ kind: 'machine.placed', actor: 'test' }])
})

const ask = (method: string, path: string, body?: unknown): Promise<Reply> => server.ask(method, path, { token, body })
const problem = async (
  method: string,
  path: string,
  body?: unknown,
): Promise<[status: number, code: string, message: string]> => {
  const reply = await ask(method, path, body)
  const { code, message } = ProblemReply.parse(reply.body)
  return [reply.status, code, message]
}
const events = async () =>
  (await server.store.events({ after: seen })).map(({ kind, actor, nodes, data }) => ({ kind, actor, nodes, data }))

const place = (mac: string, port: string): object => ({ mac, switch: 'sw1', port })
const batch = (sightings: object[], heard = ''): object => ({ sightings, heard })
const step = (node: string, phase: string, seconds: number, more: object = {}): object => ({
  kind: 'phase',
  at: new Date(Date.parse(AT) + seconds * 1000).toISOString(),
  server: '10.77.0.1',
  mac: MAC,
  node,
  ...(phase !== 'dhcp' && { boot: BOOT }),
  phase,
  ...more,
})
const timeline = async (node: string, query = ''): Promise<TimelineReply> =>
  TimelineReply.parse((await ask('GET', `/api/v1/nodes/${node}/timeline${query}`)).body)
const explain = async (node: string): Promise<BootExplanation> =>
  BootExplanation.parse((await ask('GET', `/api/v1/nodes/${node}/boot`)).body)

describe('what boot servers saw', () => {
  it('is recorded before they are answered', async () => {
    const said = [step('n001', 'dhcp', 0), step('n001', 'loader', 2), step('n001', 'kernel', 3)]
    expect((await ask('POST', '/api/v1/boot/sightings', batch(said))).status).toBe(204)
    expect((await events()).map(({ kind, nodes, data }) => [kind, nodes, (data as { phase: string }).phase])).toEqual([
      ['node.boot', 'n001', 'dhcp'],
      ['node.boot', 'n001', 'loader'],
      ['node.boot', 'n001', 'kernel'],
    ])
    expect((await server.root('GET', '/api/v1/nodes/n001')).body).toMatchObject({
      observed: { boot: { value: 'kernel' } },
    })
  })

  it('may be nothing', async () => {
    expect((await ask('POST', '/api/v1/boot/sightings', batch([]))).status).toBe(204)
    expect(await events()).toEqual([])
  })

  it.for<[what: string, body: object, code: string]>([
    ['no batch', {}, 'REQUEST_INVALID'],
    ['no list', { sightings: {}, heard: '' }, 'REQUEST_INVALID'],
    ['a sighting of no kind', batch([{ kind: 'other' }]), 'REQUEST_INVALID'],
    ['a phase there is not', batch([step('n001', 'dream', 0)]), 'REQUEST_INVALID'],
    ['no node set', batch([step('n001', 'ready', 9)], 'n[1-'), 'NODESET_INVALID'],
  ])('is refused when it is %s', async ([, body, code]) => {
    expect((await problem('POST', '/api/v1/boot/sightings', body)).slice(0, 2)).toEqual([400, code])
    expect(await events()).toEqual([])
  })

  it('of thousands of nodes fits into one request', async () => {
    const sightings = Array.from({ length: 10_000 }, (_, second) =>
      step('n004', 'loader', second / 1000, { detail: 'x'.repeat(500) }),
    )
    expect((await ask('POST', '/api/v1/boot/sightings', batch(sightings))).status).toBe(204)
  })
})

describe('the timeline of a node', () => {
  it('has its last boot, phase by phase', async () => {
    const said = [
      step('n002', 'dhcp', 0),
      step('n002', 'loader', 2.5),
      step('n002', 'failed', 4, { detail: 'no route' }),
    ]
    await ask('POST', '/api/v1/boot/sightings', batch(said))
    expect(await timeline('n002')).toEqual({
      node: 'n002',
      boots: [
        {
          id: BOOT,
          mac: MAC,
          phases: [
            { phase: 'dhcp', at: AT, seconds: 2.5 },
            { phase: 'loader', at: '2026-03-01T12:00:02.500Z' },
          ],
          failed: { at: '2026-03-01T12:00:04.000Z', reason: 'no route' },
          last: { at: '2026-03-01T12:00:04.000Z', what: 'no route' },
        },
      ],
    })
  })

  it('has as many boots as are asked for, newest first', async () => {
    const ids = ['1', '2', '3'].map(digit => digit.repeat(16))
    const said = ids.map((boot, index) => step('n003', 'ready', index * 100, { boot }))
    await ask('POST', '/api/v1/boot/sightings', batch(said))
    expect((await timeline('n003')).boots.map(({ id }) => id)).toEqual(['3'.repeat(16)])
    expect((await timeline('n003', '?boots=2')).boots.map(({ id }) => id)).toEqual(['3'.repeat(16), '2'.repeat(16)])
    expect((await timeline('n003', '?boots=100')).boots).toHaveLength(3)
  })

  it('is there for nodes that never booted, not for those that are not there', async () => {
    await server.site.write('nodes.yaml', (await server.site.read('nodes.yaml')).replace('[001-004]', '[001-005]'))
    await server.site.commit('another')
    await server.control.apply(operator)
    expect(await timeline('n005')).toEqual({ node: 'n005', boots: [] })
    expect(await problem('GET', '/api/v1/nodes/n999/timeline')).toEqual([404, 'NODE_UNKNOWN', 'no node is named n999'])
    for (const boots of ['0', '101', '1.5', 'x'])
      expect((await problem('GET', `/api/v1/nodes/n001/timeline?boots=${boots}`))[1]).toBe('REQUEST_INVALID')
  })
})

describe('what a node would boot', () => {
  it('is said with the reason, the servers and the script', async () => {
    const { digest } = await publishImage(server.images, 'compute', { kernel: 'k', initrd: 'i', squashfs: 's' })
    await ask('POST', '/api/v1/places', { places: [place('52:54:00:00:00:04', '4')] })
    const { script, last, ...rest } = await explain('n004')
    expect(rest).toEqual({
      node: 'n004',
      boots: 'image',
      image: digest,
      form: 'squashfs',
      because: [
        '52:54:00:00:00:04 is plugged in at sw1 4, the place of n004',
        `boot.image is compute: the newest is ${digest}`,
        'boot.form is squashfs: our initramfs fetches it and mounts it below an overlay of 50% of memory',
      ],
      servers: ['http://10.77.0.1:7180'],
    })
    // As its last boot got it.
    expect(last?.id).toBe(BOOT)
    expect(script).toContain(`muster.node=n004 muster.boot=${BOOT} muster.mac=52:54:00:00:00:04 `)
    expect(script).toContain('set base http://10.77.0.1:7180\n')
  })

  it('is why not, when there is nothing', async () => {
    expect(await explain('n005')).toMatchObject({
      boots: 'refuse',
      problem: 'there is no image compute on the server',
      hint: 'build it: muster image build compute',
      because: ['no machine is known to be it yet: neither by MAC nor by place', 'n005 is a node of the site'],
      script: expect.stringContaining(
        'Muster cannot boot this machine: there is no image compute on the server.',
      ) as string,
    })
  })

  it('is told for a machine that is not known yet', async () => {
    await publishImage(server.images, 'compute', { kernel: 'k', initrd: 'i', squashfs: 's' })
    const { script } = await explain('n005')
    expect(script).toContain('muster.boot=0000000000000000 muster.mac=00:00:00:00:00:00 ')
  })

  it('is its disk where the site says so', async () => {
    const before = await server.site.read('nodes.yaml')
    await server.site.write('nodes.yaml', `${before}n005: { boot: { from: disk } }\n`)
    await server.site.commit('from disk')
    await server.control.apply(operator)
    expect(await explain('n005')).toMatchObject({
      boots: 'disk',
      because: [expect.anything(), expect.anything(), 'boot.from is disk'],
    })
  })

  it('is not known of nodes that are not there', async () => {
    expect(await problem('GET', '/api/v1/nodes/n999/boot')).toEqual([404, 'NODE_UNKNOWN', 'no node is named n999'])
  })
})

describe('where machines are plugged in', () => {
  it('is kept, and in force when it is answered', async () => {
    const places = [place('52-54-00-00-00-0A', '1'), place('52:54:00:00:00:0b', '2')]
    expect((await ask('POST', '/api/v1/places', { places, source: 'leaf-switches' })).status).toBe(204)
    expect(server.boot.views.index()?.machine('52:54:00:00:00:0a')?.node.name).toBe('n001')
    expect(server.boot.views.index()?.machine('52:54:00:00:00:0b')?.node.name).toBe('n002')
    expect(await events()).toEqual([
      { kind: 'machine.placed', actor: 'olga', nodes: undefined, data: { count: 2, source: 'leaf-switches' } },
    ])
    const stored = await server.store.get('place/52:54:00:00:00:0a')
    expect(JSON.parse(stored?.value ?? '')).toEqual({
      switch: 'sw1',
      port: '1',
      source: 'leaf-switches',
      since: expect.any(String) as string,
    })
  })

  it('moves with the machine', async () => {
    await ask('POST', '/api/v1/places', { places: [place(MAC, '1')] })
    await ask('POST', '/api/v1/places', { places: [place(MAC, '3')] })
    expect(server.boot.views.index()?.machine(MAC)?.node.name).toBe('n003')
  })

  it('is what is said last of a machine that is named twice', async () => {
    const places = [place(MAC, '1'), place('52:54:00:00:00:02', '2'), place(MAC.replaceAll(':', '-'), '4')]
    expect((await ask('POST', '/api/v1/places', { places })).status).toBe(204)
    expect(server.boot.views.index()?.machine(MAC)?.node.name).toBe('n004')
    const placed = (await events()).filter(({ kind }) => kind === 'machine.placed')
    expect(placed.map(({ data }) => data)).toEqual([{ count: 2, source: 'operator' }])
  })

  it.for<[what: string, body: object]>([
    ['nothing', { places: [] }],
    ['a MAC that is none', { places: [place('x', '1')] }],
    ['no port', { places: [{ mac: MAC, switch: 'sw1' }] }],
    ['an empty port', { places: [place(MAC, '')] }],
    ['more than belongs to it', { places: [{ mac: MAC, switch: 'a', port: '1', node: 'n001' }] }],
    ['nobody who says so', { places: [place(MAC, '1')], source: '' }],
  ])('is refused with %s', async ([, body]) => {
    expect((await problem('POST', '/api/v1/places', body)).slice(0, 2)).toEqual([400, 'REQUEST_INVALID'])
    expect(await events()).toEqual([])
  })
})

describe('the view for boot servers', () => {
  it('is whole for who does not have it, and not sent again to who does', async () => {
    const reply = await ask('GET', '/api/v1/boot/view')
    const view = server.boot.views.index()?.view
    expect(reply.body).toEqual(JSON.parse(JSON.stringify(view)))
    expect((await ask('GET', `/api/v1/boot/view?known=${view?.version}`)).body).toEqual({ unchanged: true })
    expect((await ask('GET', '/api/v1/boot/view?known=other')).body).toEqual(reply.body)
  })

  it('is not there before a site was applied', async () => {
    await using fresh = await startTestServer()
    const reply = await fresh.root('GET', '/api/v1/boot/view')
    expect(ProblemReply.parse(reply.body)).toMatchObject({
      code: 'BOOT_NOT_READY',
      message: 'no site has been applied yet',
    })
  })

  it('says what is recorded to a server that has nothing but it', async () => {
    const sightings: SightingBatch = { sightings: [], heard: 'n[001-004]' }
    expect((await ask('POST', '/api/v1/boot/sightings', sightings)).status).toBe(204)
  })
})
