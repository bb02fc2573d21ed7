import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Artefacts } from '../../boot/artefacts.ts'
import { createBootHttp } from '../../boot/http.ts'
import { ViewIndex } from '../../boot/index-view.ts'
import { boots, prov, sha256Of, viewOf } from '../../boot/testing.ts'
import { type BootNode, type BootView, bootImage } from '../../boot/view.ts'
import { until } from '../../control/testing.ts'
import { type ImageStore, openImageStore } from '../../images/store/store.ts'
import type { Sighting } from '../../nodes/reports.ts'
import { publishSimulatedImage } from './image.ts'
import type { SimulatedNode } from './node.ts'
import { labMac, simulate } from './simulate.ts'

/** Machines that lose no time. */
const PACE = { firmware: 1, kernel: 1, agent: 1 }

let dir: string
let images: ImageStore
let server: Server
let url: string
let view: BootView
let told: Sighting[]
let beats: string[]
let running: Promise<void> | undefined
let stop: AbortController

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-simulated-'))
  images = await openImageStore(join(dir, 'images'))
  await publishSimulatedImage(images, 'compute')
  const found = await images.resolve('compute')
  view = viewOf({ nodes: [], images: { compute: bootImage(found.digest, found.manifest) } })
  told = []
  beats = []
  running = undefined
  stop = new AbortController()
  await listen(0)
})
afterEach(async () => {
  stop.abort()
  await running
  close()
  await rm(dir, { recursive: true, force: true })
})

async function listen(port: number): Promise<void> {
  const logger = pino({ enabled: false })
  server = createBootHttp({
    logger,
    artefacts: new Artefacts(images, { logger, budget: 1e6 }),
    index: () => new ViewIndex(view),
    servers: () => [url],
    tell: sighting => void told.push(sighting),
    heard: node => void beats.push(node),
    loader: async () => undefined,
    discoveryExtras: () => undefined,
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function close(): void {
  server.closeAllConnections()
  server.close()
}

/** So many nodes of the site, and the machines that play them. */
function cast(count: number, more: Partial<BootNode> = {}): SimulatedNode[] {
  const nodes = Array.from({ length: count }, (_, index) => ({ name: `s${index}`, mac: labMac(`s${index}`) }))
  view = {
    ...view,
    nodes: nodes.map(({ name, mac }) => boots(name, { interfaces: [prov('10.77.1.1', { mac })], ...more })),
  }
  return nodes
}

function start(nodes: readonly SimulatedNode[], fetch: 'whole' | 'headers' = 'whole'): string[] {
  const phases: string[] = []
  const onPhase = (node: SimulatedNode, phase: string): void => void phases.push(`${node.name} ${phase}`)
  running = simulate(nodes, { servers: [url], signal: stop.signal, fetch, interval: 0.05, onPhase }, PACE)
  return phases
}

const phasesOf = (node: string): string[] =>
  told.flatMap(sighting => (sighting.kind === 'phase' && sighting.node === node ? [sighting.phase] : []))

describe('a simulated node', () => {
  it('goes through the phases of a real one, in one boot, and then sends heartbeats', async () => {
    const phases = start(cast(1))
    await until('heartbeats', () => beats.length >= 3)
    expect(phasesOf('s0')).toEqual(['loader', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready'])
    const ids = new Set(told.map(sighting => ('boot' in sighting ? sighting.boot : '')))
    expect(ids.size).toBe(1)
    expect(phases).toEqual(['s0 loader', 's0 kernel', 's0 root', 's0 ready'])
    expect(told.find(({ kind }) => kind === 'status')).toMatchObject({
      node: 's0',
      mac: labMac('s0'),
      image: view.images['compute']?.digest,
      kernel: 'simulated',
      hostname: 's0',
      health: { status: 'ok', reason: '' },
    })
  })

  it('that boots a whole cpio has no second stage', async () => {
    start(cast(1, { form: 'cpio' }))
    await until('heartbeats', () => beats.length > 0)
    expect(phasesOf('s0')).toEqual(['loader', 'loader', 'kernel', 'agent', 'ready'])
  })

  it('may only ask for headers', async () => {
    start(cast(1), 'headers')
    await until('heartbeats', () => beats.length > 0)
    expect(phasesOf('s0').at(-1)).toBe('ready')
  })

  it('never runs what has another digest', async () => {
    const nodes = cast(1)
    const { squashfs } = view.images['compute'] ?? {}
    const other = sha256Of('nothing of that name')
    view = {
      ...view,
      images: {
        compute: { ...view.images['compute'], squashfs: { sha256: other, size: 1 } } as BootView['images'][string],
      },
    }
    expect(squashfs?.sha256).not.toBe(other)
    start(nodes)
    await until('it fetches', () => phasesOf('s0').includes('fetch'))
    stop.abort()
    await running
    expect(phasesOf('s0')).not.toContain('root')
  })

  it.for<[what: string, more: Partial<BootNode>]>([
    ['boots from its disk', { from: 'disk' }],
    ['gets nothing to boot', { image: 'login' }],
  ])('that %s says nothing more', async ([, more]) => {
    const phases = start(cast(1, more))
    await until('it asked', () => told.length > 0)
    stop.abort()
    await running
    expect(told).toHaveLength(1)
    expect(phases).toEqual(['s0 loader'])
  })

  it('that nobody knows does not pretend to be ready', async () => {
    cast(1)
    const phases = start([{ name: 'stranger', mac: labMac('stranger') }])
    await until('it asked', () => phases.length > 0)
    stop.abort()
    await running
    expect(told.map(sighting => sighting.kind === 'phase' && sighting.phase)).toEqual(['loader'])
    expect(phases).toEqual(['stranger loader'])
  })

  it('keeps its boot while the server is away for a moment', async () => {
    start(cast(1))
    await until('heartbeats', () => beats.length > 0)
    const port = Number(new URL(url).port)
    close()
    await listen(port)
    beats = []
    await until('heartbeats again', () => beats.length > 0)
    expect(phasesOf('s0').filter(phase => phase === 'ready')).toHaveLength(1)
  })
})

describe('many simulated nodes', () => {
  it('boot in one process', async () => {
    const nodes = cast(300)
    start(nodes)
    await until('all are up', () => new Set(beats).size === 300, 120_000)
    expect(nodes.filter(({ name }) => phasesOf(name).at(-1) !== 'ready')).toEqual([])
  })

  it('end when they are told to', async () => {
    start(cast(20))
    await until('some are up', () => beats.length > 0)
    stop.abort()
    await expect(running).resolves.toBeUndefined()
  })
})

describe('the MAC of a machine of the lab', () => {
  it('is the same every time, and given out locally', () => {
    expect([labMac('n001'), labMac('n002'), labMac('n001')]).toEqual([
      '52:31:06:fb:0c:35',
      '52:42:22:82:09:1f',
      '52:31:06:fb:0c:35',
    ])
  })

  it('is never that of another', () => {
    const macs = Array.from({ length: 50_000 }, (_, index) => labMac(`n${String(index).padStart(5, '0')}`))
    expect(new Set(macs).size).toBe(50_000)
    expect(macs.filter(mac => !/^52(:[0-9a-f]{2}){5}$/.test(mac))).toEqual([])
  })
})

describe('an image that is simulated', () => {
  it('has everything that nodes fetch, and says what it is', async () => {
    const { manifest } = await images.resolve('compute')
    expect(manifest).toMatchObject({
      name: 'compute',
      os: { id: 'simulated', name: 'Simulated: boots nothing' },
      kernel: { version: 'simulated' },
    })
    expect(manifest.artefacts.map(({ type }) => type)).toEqual(['kernel', 'initrd', 'squashfs', 'cpio.zst'])
    for (const { sha256 } of manifest.artefacts) expect(await images.has(sha256)).toBe(true)
  })

  it('is the same every time', async () => {
    const before = await images.latest('compute')
    await publishSimulatedImage(images, 'compute')
    expect((await images.latest('compute'))?.digest).toBe(before?.digest)
  })

  it('is another under another name', async () => {
    await publishSimulatedImage(images, 'login')
    expect((await images.latest('login'))?.digest).not.toBe((await images.latest('compute'))?.digest)
  })

  it('that is damaged is noticed', async () => {
    const nodes = cast(1)
    const { sha256 = '' } = view.images['compute']?.kernel ?? {}
    await rm(images.pathOf(sha256))
    await writeFile(images.pathOf(sha256), 'simulated rubbish')
    start(nodes)
    await until('it tries', () => phasesOf('s0').length >= 2)
    stop.abort()
    await running
    expect(phasesOf('s0')).not.toContain('kernel')
  })
})
