import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type TestControl, nodesYaml, operator, startControl } from '../control/testing.ts'
import { hexOf } from '../images/store/contents.ts'
import { type ImageStore, openImageStore } from '../images/store/store.ts'
import { manifestText } from '../images/manifest.ts'
import { NO_ROOTS, publishImage } from '../images/store/testing.ts'
import { keyId, newPrivateKey, parsePrivateKey, publicText, signBytes } from '../images/trust/keys.ts'
import { signifySignature } from '../images/trust/signify.ts'
import { SETTINGS } from '../site/settings.ts'
import { ViewCompiler } from './compile.ts'
import type { ViewIndex } from './index-view.ts'
import type { BootView } from './view.ts'

let world: TestControl
let images: ImageStore
let compiler: ViewCompiler
/** All views there were, in order. */
let views: BootView[]
let logged: string[]
let waiting: (() => void)[]

beforeEach(async () => {
  world = await startControl()
  images = await openImageStore(join(world.data, 'images'))
  logged = []
  compiler = await start()
})
afterEach(async () => {
  await compiler[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})

async function start(): Promise<ViewCompiler> {
  views = []
  waiting = []
  const logger = pino({ base: null }, { write: line => void logged.push((JSON.parse(line) as { msg: string }).msg) })
  const started = await ViewCompiler.start(world.store, images, logger)
  started.onChange(({ view }) => {
    views.push(view)
    for (const look of waiting) look()
  })
  return started
}

/** Resolves once there is such a view, without asking for it. */
const seen = (what: (view: BootView) => boolean): Promise<void> =>
  new Promise(resolve => {
    const look = (): void => {
      if (views.some(what)) resolve()
    }
    waiting.push(look)
    look()
  })

const view = (): BootView => (compiler.index() as ViewIndex).view
const names = (): string[] => view().nodes.map(({ name }) => name)

async function apply(files: Record<string, string> = {}): Promise<void> {
  for (const [path, text] of Object.entries(files)) await world.site.write(path, text)
  await world.site.commit('change')
  await world.control.apply(operator)
}

const PARTS = { kernel: 'kernel', initrd: 'initrd', squashfs: 'squashfs' }

describe('before a site was applied', () => {
  it('there is no view, and nobody is told', async () => {
    await compiler.refresh()
    expect(compiler.index()).toBeUndefined()
    expect(views).toEqual([])
  })
})

describe('the view', () => {
  it('is what the site says, once it is applied', async () => {
    await apply()
    await seen(({ nodes }) => nodes.length === 4)
    expect(names()).toEqual(['n001', 'n002', 'n003', 'n004'])
    expect(view().settings).toMatchObject({ site: 'demo', discovery: 'compute' })
    expect(compiler.index()?.node('n002')).toEqual({
      name: 'n002',
      domain: 'demo.cluster',
      interfaces: [{ name: 'prov', network: 'prov', address: '10.77.1.2' }],
      place: 'sw1 2',
      from: 'network',
      image: 'compute',
      root: 'ram',
      form: 'squashfs',
      overlay: '50%',
      args: ['console=ttyS0,115200'],
    })
    expect([view().images, view().places]).toEqual([{}, {}])
  })

  it('has another version when it is another, and only then', async () => {
    await apply()
    await compiler.refresh()
    const { version } = view()
    expect(version).toMatch(/^[0-9a-f]{32}$/)
    await compiler.refresh()
    expect(view().version).toBe(version)
    expect(views).toHaveLength(1)
    await apply({ 'nodes.yaml': nodesYaml(5) })
    await compiler.refresh()
    expect(view().version).not.toBe(version)
    await apply({ 'nodes.yaml': nodesYaml(4) })
    await compiler.refresh()
    expect(view().version).toBe(version)
    expect(views.map(({ nodes }) => nodes.length)).toEqual([4, 5, 4])
  })

  it('is told at once to who comes later', async () => {
    await apply()
    await compiler.refresh()
    const told: ViewIndex[] = []
    compiler.onChange(index => told.push(index))
    expect(told).toEqual([compiler.index()])
  })

  it('follows nodes that come and go', async () => {
    await apply()
    await seen(({ nodes }) => nodes.length === 4)
    await apply({ 'nodes.yaml': nodesYaml(2) })
    await seen(({ nodes }) => nodes.length === 2)
    expect(compiler.index()?.node('n003')).toBeUndefined()
    await apply({ 'nodes.yaml': nodesYaml(6) })
    await seen(({ nodes }) => nodes.length === 6)
  })

  it('looks only at nodes that changed', async () => {
    await apply()
    await compiler.refresh()
    const before = view().nodes
    await apply({ 'nodes.yaml': `${nodesYaml(4)}n004:\n  boot: { args: [quiet] }\n` })
    await compiler.refresh()
    expect(view().nodes.map((node, index) => node === before[index])).toEqual([true, true, true, false])
  })

  it('follows where machines are plugged in', async () => {
    await apply()
    await compiler.refresh()
    const place = { switch: 'sw1', port: '3', source: 'lab', since: '2026-03-01T12:00:00.000Z' }
    await world.store.commit(
      [{ key: 'place/52:54:00:00:00:03', value: JSON.stringify(place) }],
      [{ kind: 'machine.placed', actor: 'test' }],
    )
    await seen(({ places }) => places['52:54:00:00:00:03'] === 'sw1 3')
    expect(compiler.index()?.machine('52:54:00:00:00:03')?.node.name).toBe('n003')
  })

  it('is not looked at for what does not matter', async () => {
    await apply()
    await compiler.refresh()
    await world.store.commit(
      [{ key: 'place/52:54:00:00:00:03', value: 'rubbish' }],
      [{ kind: 'node.boot', actor: 'test' }],
    )
    await world.store.commit([{ key: 'place/52:54:00:00:00:03', value: null }], [{ kind: 'node.boot', actor: 'test' }])
    await compiler.refresh()
    expect(logged).toEqual([])
    expect(views).toHaveLength(1)
  })

  it('is there at once after a restart', async () => {
    await apply()
    await publishImage(images, 'compute', PARTS)
    await compiler.refresh()
    const before = view()
    await compiler[Symbol.asyncDispose]()
    compiler = await start()
    expect(view()).toEqual(before)
    expect(views).toEqual([before])
  })
})

describe('images of the view', () => {
  it('are there as soon as they are published, also by another process', async () => {
    await apply()
    const { digest, manifest } = await publishImage(images, 'compute', PARTS)
    await seen(view => view.images['compute']?.digest === digest)
    expect(view().images['compute']).toEqual({
      name: 'compute',
      digest,
      arch: 'amd64',
      manifest: { sha256: digest.slice(7), size: (await stat(images.pathOf(digest.slice(7)))).size },
      kernelVersion: '6.1.0-30-amd64',
      kernel: { sha256: manifest.artefacts[0]?.sha256, size: 6 },
      initrd: { sha256: manifest.artefacts[1]?.sha256, size: 6 },
      squashfs: { sha256: manifest.artefacts[2]?.sha256, size: 8 },
      cpio: undefined,
    })
    const other = await openImageStore(images.dir)
    const next = await publishImage(other, 'compute', { ...PARTS, squashfs: 'newer' })
    await seen(view => view.images['compute']?.digest === next.digest)
  })

  it('come with a signature that nodes can check, once a key of the site has signed them', async () => {
    const key = parsePrivateKey(newPrivateKey(), 'a test')
    const id = keyId(publicText(key))
    const text = await readFile(join(world.site.dir, 'site.yaml'), 'utf8')
    await apply({ 'site.yaml': `${text}\ntrust: { keys: { ci: { public: "${publicText(key)}" } } }\n` })
    const { digest, manifest } = await publishImage(images, 'compute', PARTS)
    await seen(view => view.images['compute']?.untrusted === 'nobody has signed it')
    expect(view().images['compute']?.signature).toBe(undefined)
    const signature = signBytes(Buffer.from(manifestText(manifest)), key)
    await images.describe(digest, about => ({
      ...about,
      signatures: [{ key: id, signature, seen: '2026-11-16T00:00:00.000Z' }],
    }))
    await seen(view => view.images['compute']?.signature !== undefined)
    expect(view().images['compute']?.signature).toBe(signifySignature({ key: id, signature }))
  })

  it('go when they are removed', async () => {
    await apply()
    const { digest } = await publishImage(images, 'compute', PARTS)
    await seen(view => view.images['compute'] !== undefined)
    await images.remove(digest, NO_ROOTS)
    await seen(view => views.length > 2 && view.images['compute'] === undefined)
    expect(view().images).toEqual({})
  })

  it('are those that nodes and discovery ask for, as they ask for them', async () => {
    const old = await publishImage(images, 'compute', PARTS)
    const newest = await publishImage(images, 'compute', { ...PARTS, squashfs: 'newer' })
    const login = await publishImage(images, 'login', PARTS)
    await publishImage(images, 'nobody', PARTS)
    await apply({
      'images/login/image.yaml': 'from: { debian: bookworm }\n',
      'nodes.yaml': `${nodesYaml(4)}n002: { boot: { image: compute@${old.digest} } }\nn003: { boot: { image: compute@stable } }\n`,
      'site.yaml': `${await world.site.read('site.yaml')}\nprovision: { discovery: login }\n`,
    })
    await compiler.refresh()
    expect(Object.entries(view().images).map(([reference, { digest }]) => [reference, digest])).toEqual([
      ['compute', newest.digest],
      [`compute@${old.digest}`, old.digest],
      ['compute@stable', newest.digest],
      ['login', login.digest],
    ])
  })

  it('that are damaged are left out, and the rest is served', async () => {
    await apply()
    const { digest } = await publishImage(images, 'compute', PARTS)
    const file = images.pathOf(hexOf(digest))
    await chmod(file, 0o600)
    await writeFile(file, 'rubbish')
    await compiler.refresh()
    expect(view().images).toEqual({})
    expect(names()).toHaveLength(4)
    expect(logged).toContain('image cannot be used')
  })
})

describe('what cannot be understood', () => {
  it('leaves what was in force, and is made good by the next change', async () => {
    await apply()
    await compiler.refresh()
    const before = view()
    const settings = (await world.store.get(SETTINGS))?.value ?? ''
    await world.store.commit([{ key: SETTINGS, value: '{"site":7}' }], [{ kind: 'test', actor: 'test' }])
    await expect(compiler.refresh()).rejects.toThrow('invalid_type')
    expect(view()).toBe(before)
    expect(logged).toContain('what nodes should boot cannot be worked out')
    await world.store.commit([{ key: SETTINGS, value: settings }], [{ kind: 'test', actor: 'test' }])
    await apply({ 'nodes.yaml': nodesYaml(5) })
    await seen(({ nodes }) => nodes.length === 5)
  })
})

describe('many changes at once', () => {
  it('end in what was true last', async () => {
    await apply()
    await Promise.all([
      compiler.refresh(),
      publishImage(images, 'compute', PARTS),
      apply({ 'nodes.yaml': nodesYaml(7) }),
      compiler.refresh(),
    ])
    await compiler.refresh()
    expect(names()).toHaveLength(7)
    expect(view().images['compute']).toBeDefined()
  })
})
