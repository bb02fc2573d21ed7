import { createHash, randomBytes } from 'node:crypto'
import { readFile, readdir, readlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import type { Digest, Manifest } from './manifest.ts'
import { type About, mergeAbout } from './store/about.ts'
import type { Blob } from './store/disk.ts'
import type { ImageName } from './store/reference.ts'
import type { ImageStore } from './store/store.ts'
import { makeManifest, makeStore, problems, publishImage } from './store/testing.ts'
import { type ImageSource, type ImageTarget, pullImage, pushImage } from './transfer.ts'

const CHUNK = 1000
const ROOT = randomBytes(10_500)
const ROOT_SHA = createHash('sha256').update(ROOT).digest('hex')
const unreachable = (): MusterError => new MusterError('SERVER_UNREACHABLE', 'gone')

/** Another store as one sees it through a network. */
class Peer implements ImageSource, ImageTarget {
  readonly store: ImageStore
  /** From where each download began. */
  readonly downloads: [sha256: string, offset: number][] = []
  readonly uploads: string[] = []
  /** What happens before the chunk at that offset is sent. */
  disturb: (offset: number, blob: Blob) => void = () => {}
  /** What is sent instead. */
  forge: (chunk: Buffer) => Buffer = chunk => chunk
  underWay = 0
  mostAtOnce = 0

  constructor(store: ImageStore) {
    this.store = store
  }

  list(): Promise<readonly ImageName[]> {
    return this.store.list()
  }

  manifest({ digest }: ImageName): Promise<Manifest> {
    return this.store.manifest(digest)
  }

  about({ digest }: ImageName): Promise<About> {
    return this.store.about(digest)
  }

  async describe({ digest }: ImageName, about: About): Promise<void> {
    await this.store.describe(digest, known => mergeAbout(known, about))
  }

  async *download(blob: Blob, offset: number): AsyncGenerator<Buffer> {
    this.downloads.push([blob.sha256, offset])
    const bytes = await this.store.read(blob.sha256)
    for (let at = offset; at < bytes.length; at += CHUNK) {
      this.disturb(at, blob)
      yield this.forge(bytes.subarray(at, at + CHUNK))
    }
  }

  missing(digests: readonly string[]): Promise<readonly string[]> {
    return this.store.missing(digests)
  }

  async upload({ sha256 }: Blob, content: Readable): Promise<void> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.underWay)
    this.uploads.push(sha256)
    try {
      this.disturb(0, { sha256, size: 0 })
      await this.store.receive(sha256, content as AsyncIterable<Buffer>, 1_000_000)
    } finally {
      this.underWay--
    }
  }

  publish(manifest: Manifest): Promise<Digest> {
    return this.store.publish(manifest)
  }
}

interface World extends AsyncDisposable {
  readonly here: ImageStore
  readonly there: ImageStore
  readonly peer: Peer
}

async function world(): Promise<World> {
  const here = await makeStore()
  const there = await makeStore()
  return {
    here: here.store,
    there: there.store,
    peer: new Peer(there.store),
    async [Symbol.asyncDispose]() {
      await here[Symbol.asyncDispose]()
      await there[Symbol.asyncDispose]()
    },
  }
}

const temporaries = (store: ImageStore): Promise<string[]> => readdir(join(store.dir, 'tmp'))
const leftOver = async (store: ImageStore, text: Uint8Array): Promise<void> =>
  writeFile(join(store.dir, 'tmp', `0-0.ab.${ROOT_SHA}`), text)

/** How many files of the store this process has open. */
async function openFiles(store: ImageStore): Promise<number> {
  const links = (await readdir('/proc/self/fd')).map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => ''))
  return (await Promise.all(links)).filter(target => target.startsWith(store.dir)).length
}

describe('pushing', () => {
  it('sends what is missing, each blob once, and publishes', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await there.put('vmlinuz')
    const { digest } = await publishImage(here, 'compute', {
      kernel: 'vmlinuz',
      squashfs: ROOT,
      erofs: ROOT,
      log: 'ok',
    })
    const told: [number, number][] = []
    const progress = (done: number, total: number): number => told.push([done, total])
    const moved = await pushImage(peer, here, 'compute', { progress })
    expect(moved).toEqual({ name: 'compute', digest, blobs: 2, bytes: 10_502 })
    expect(peer.uploads.length).toBe(2)
    expect(await there.resolve('compute')).toEqual(await here.resolve('compute'))
    expect(await problems(there)).toEqual([])
    expect([told.at(0), told.at(-1)]).toEqual([
      [0, 10_502],
      [10_502, 10_502],
    ])
    expect(await pushImage(peer, here, digest)).toMatchObject({ blobs: 0, bytes: 0 })
  })

  it('sends two at a time', async () => {
    await using all = await world()
    const { here, peer } = all
    await publishImage(here, 'compute', { kernel: '1', initrd: '2', squashfs: '3', erofs: '4', log: '5', sbom: '6' })
    await pushImage(peer, here, 'compute')
    expect(peer.uploads.length).toBe(6)
    expect(peer.mostAtOnce).toBe(2)
  })

  it('publishes nothing when a blob does not get through, and ends the others', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(here, 'compute', { kernel: '1', initrd: '2', squashfs: '3', erofs: '4', log: '5', sbom: '6' })
    peer.disturb = () => {
      throw unreachable()
    }
    await expect(pushImage(peer, here, 'compute')).rejects.toMatchObject({ code: 'SERVER_UNREACHABLE' })
    expect(peer.uploads.length).toBe(2)
    expect(peer.underWay).toBe(0)
    expect(await there.names()).toEqual([])
    expect(await temporaries(there)).toEqual([])
  })

  it('lets go of a blob of which the other side has read only a part', async () => {
    await using all = await world()
    const { here, peer } = all
    await publishImage(here, 'compute', { squashfs: randomBytes(3_000_000) })
    const open = await openFiles(here)
    peer.upload = async (_, content) => {
      for await (const chunk of content) throw new MusterError('SERVER_UNREACHABLE', `gone after ${chunk.length > 0}`)
    }
    await expect(pushImage(peer, here, 'compute')).rejects.toMatchObject({ message: 'gone after true' })
    await expect.poll(() => openFiles(here), { timeout: 30_000 }).toBe(open)
  })

  it('ends when it is interrupted', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(here, 'compute', { kernel: '1', initrd: '2', squashfs: '3' })
    const interrupt = new AbortController()
    peer.disturb = () => interrupt.abort()
    await expect(pushImage(peer, here, 'compute', { signal: interrupt.signal })).rejects.toMatchObject({
      code: 'ABORTED',
    })
    expect(await there.names()).toEqual([])
  })

  it('of what is unknown or damaged is refused', async () => {
    await using all = await world()
    const { here, peer } = all
    await expect(pushImage(peer, here, 'compute')).rejects.toMatchObject({ code: 'IMAGE_UNKNOWN' })
    const { manifest } = await publishImage(here, 'compute', { kernel: 'vmlinuz' })
    await writeFile(here.pathOf(manifest.artefacts[0]?.sha256 ?? ''), 'vmlinux')
    await expect(pushImage(peer, here, 'compute')).rejects.toMatchObject({ code: 'DIGEST_MISMATCH' })
    await writeFile(here.pathOf(manifest.artefacts[0]?.sha256 ?? ''), 'vml')
    await expect(pushImage(peer, here, 'compute')).rejects.toMatchObject({ code: 'IMAGE_DAMAGED' })
  })
})

describe('pulling', () => {
  it('fetches what is missing and publishes', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await here.put('vmlinuz')
    const { digest } = await publishImage(there, 'compute', { kernel: 'vmlinuz', squashfs: ROOT, log: '' })
    const told: number[] = []
    const moved = await pullImage(peer, here, `compute@${digest.slice(0, 20)}`, { progress: done => told.push(done) })
    expect(moved).toEqual({ name: 'compute', digest, blobs: 2, bytes: 10_500 })
    expect(told.at(-1)).toBe(10_500)
    expect(await here.resolve('compute')).toEqual(await there.resolve('compute'))
    expect(await problems(here)).toEqual([])
    expect(await temporaries(here)).toEqual([])
    expect(await pullImage(peer, here, 'compute')).toMatchObject({ blobs: 0, bytes: 0 })
  })

  it('goes on where the connection broke, however often it breaks', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    const broken = new Set<number>()
    peer.disturb = offset => {
      if (offset === 0 || offset % 2000 !== 0 || broken.has(offset)) return
      broken.add(offset)
      throw unreachable()
    }
    await pullImage(peer, here, 'compute')
    expect(peer.downloads.map(([, offset]) => offset)).toEqual([0, 2000, 4000, 6000, 8000, 10_000])
    expect(await problems(here)).toEqual([])
  })

  it('gives up after five attempts without a byte, and the next goes on from there', async () => {
    await using all = await world()
    const { here, there, peer } = all
    const { digest } = await publishImage(there, 'compute', { squashfs: ROOT })
    peer.disturb = offset => {
      if (offset === 3000) throw unreachable()
    }
    await expect(pullImage(peer, here, 'compute')).rejects.toMatchObject({
      code: 'SERVER_UNREACHABLE',
      message: 'gone (at byte 3000 of 10500)',
      hint: 'try again: it goes on from there',
    })
    expect(peer.downloads.map(([, offset]) => offset)).toEqual([0, 3000, 3000, 3000, 3000, 3000])
    expect(await here.names()).toEqual([])
    peer.disturb = () => {}
    peer.downloads.length = 0
    const told: number[] = []
    await pullImage(peer, here, digest, { progress: done => told.push(done) })
    expect(peer.downloads).toEqual([[ROOT_SHA, 3000]])
    expect(told.slice(0, 2)).toEqual([0, 3000])
    expect(await readFile(here.pathOf(ROOT_SHA))).toEqual(ROOT)
    expect(await temporaries(here)).toEqual([])
  })

  it('takes an early end for a broken connection', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    peer.download = async function* (blob, offset) {
      this.downloads.push([blob.sha256, offset])
      yield ROOT.subarray(offset, offset + 5000)
    }
    await pullImage(peer, here, 'compute')
    expect(peer.downloads.map(([, offset]) => offset)).toEqual([0, 5000, 10_000])
  })

  it.for([
    ['is rubbish', Buffer.alloc(2000, 'x')],
    ['is longer than the whole', Buffer.alloc(20_000, 'x')],
    ['has the length of the whole', Buffer.alloc(10_500, 'x')],
  ] as const)('starts over when what was left of an earlier attempt %s', async ([, rest]) => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    await leftOver(here, rest)
    const told: number[] = []
    await pullImage(peer, here, 'compute', { progress: done => told.push(done) })
    expect(peer.downloads.at(-1)).toEqual([ROOT_SHA, 0])
    expect(told.at(-1)).toBe(10_500)
    expect(await problems(here)).toEqual([])
    expect(await temporaries(here)).toEqual([])
  })

  it('needs no connection for a blob of which all was there already', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    await leftOver(here, ROOT)
    await pullImage(peer, here, 'compute')
    expect(peer.downloads).toEqual([])
  })

  it.for([
    ['other bytes', (chunk: Buffer) => Buffer.alloc(chunk.length, 'x')],
    ['more bytes', (chunk: Buffer) => Buffer.concat([chunk, chunk])],
  ] as const)('stores nothing of a source that sends %s', async ([, forge]) => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    peer.forge = forge
    await expect(pullImage(peer, here, 'compute')).rejects.toMatchObject({ code: 'DIGEST_MISMATCH' })
    expect(await here.has(ROOT_SHA)).toBe(false)
    expect(await temporaries(here)).toEqual([])
    expect(await here.names()).toEqual([])
  })

  it('takes no manifest but the one it asked for', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    peer.manifest = async () => makeManifest('compute', [])
    await expect(pullImage(peer, here, 'compute')).rejects.toMatchObject({ code: 'DIGEST_MISMATCH' })
    expect(await here.names()).toEqual([])
  })

  it('ends when it is interrupted, and keeps what it has', async () => {
    await using all = await world()
    const { here, there, peer } = all
    await publishImage(there, 'compute', { squashfs: ROOT })
    const interrupt = new AbortController()
    peer.disturb = offset => {
      if (offset < 4000) return
      interrupt.abort()
      throw new MusterError('ABORTED', 'interrupted')
    }
    await expect(pullImage(peer, here, 'compute', { signal: interrupt.signal })).rejects.toMatchObject({
      code: 'ABORTED',
    })
    peer.disturb = () => {}
    await pullImage(peer, here, 'compute')
    expect(peer.downloads.at(-1)).toEqual([ROOT_SHA, 4000])
  })

  it('of what is unknown there says so', async () => {
    await using all = await world()
    await publishImage(all.there, 'compute', {})
    await expect(pullImage(all.peer, all.here, 'comptue')).rejects.toMatchObject({
      code: 'IMAGE_UNKNOWN',
      message: 'no image is named comptue — did you mean compute?',
    })
  })
})
