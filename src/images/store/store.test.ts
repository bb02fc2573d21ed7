import { readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Digest, type Manifest, manifestText } from '../manifest.ts'
import { hexOf } from './contents.ts'
import { openImageStore } from './store.ts'
import { NO_ROOTS, makeManifest, makeStore, publishImage, wholeBlobs } from './testing.ts'

const INPUTS = `sha256:${'1'.repeat(64)}`

/** Ticks a minute at every look. */
function clock(): () => Date {
  let minutes = 0
  return () => new Date(Date.UTC(2026, 4, 1, 12, minutes++))
}

describe('publishing', () => {
  it('stores the canonical text as a blob and lists it under its name', async () => {
    await using temporary = await makeStore(clock())
    const { store, dir } = temporary
    const { digest, manifest } = await publishImage(store, 'compute', { kernel: 'vmlinuz', squashfs: 'root' })
    const text = manifestText(manifest)
    expect(digest).toBe(`sha256:${createHash('sha256').update(text).digest('hex')}`)
    expect(await readFile(store.pathOf(hexOf(digest)), 'utf8')).toBe(text)
    const listed = { digest, created: '2026-03-01T12:00:00Z', built: '2026-05-01T12:00:00.000Z', inputs: INPUTS }
    expect(JSON.parse(await readFile(join(dir, 'names/compute.json'), 'utf8'))).toEqual({ images: [listed] })
    expect(await store.names()).toEqual(['compute'])
    expect(await store.images('compute')).toEqual([{ name: 'compute', ...listed }])
    expect(await store.resolve('compute')).toEqual({ name: 'compute', digest, manifest })
  })

  it('puts the newest first, also one that is there already', async () => {
    await using temporary = await makeStore(clock())
    const { store, dir } = temporary
    const first = await publishImage(store, 'compute', { squashfs: 'one' })
    const second = await publishImage(store, 'compute', { squashfs: 'two' })
    expect(await store.latest('compute')).toMatchObject({ digest: second.digest })
    const blobs = await wholeBlobs(dir)
    expect(await store.publish(first.manifest)).toBe(first.digest)
    expect((await store.images('compute')).map(({ digest, built }) => [digest, built])).toEqual([
      [first.digest, '2026-05-01T12:02:00.000Z'],
      [second.digest, '2026-05-01T12:01:00.000Z'],
    ])
    expect(await wholeBlobs(dir)).toEqual(blobs)
  })

  it('gives one digest however the manifest is written', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const { digest, manifest } = await publishImage(store, 'compute', { kernel: 'vmlinuz' })
    const backwards = Object.fromEntries(Object.entries(manifest).reverse()) as Manifest
    expect(Object.keys(backwards)[0]).toBe('artefacts')
    expect(await store.publish(backwards)).toBe(digest)
    expect((await store.images('compute')).length).toBe(1)
  })

  it('is refused when a blob is missing or has another length, and names it', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    const kernel = await store.put('vmlinuz')
    const manifest = makeManifest('compute', [
      { type: 'kernel', sha256: kernel.sha256, size: 8 },
      { type: 'squashfs', sha256: '0'.repeat(64), size: 1 },
    ])
    await expect(store.publish(manifest)).rejects.toMatchObject({
      code: 'IMAGE_INCOMPLETE',
      message: `compute is not whole: kernel: ${kernel.sha256} has 7 bytes, not 8`,
      details: [`kernel: ${kernel.sha256} has 7 bytes, not 8`, `squashfs: ${'0'.repeat(64)} is missing`],
    })
    expect(await store.names()).toEqual([])
    expect(await wholeBlobs(dir)).toEqual([kernel.sha256])
    expect(await readdir(join(dir, 'tmp'))).toEqual([])
  })

  it('is refused for a name that leads elsewhere', async () => {
    await using temporary = await makeStore()
    await expect(temporary.store.publish(makeManifest('../evil', []))).rejects.toThrow('is not a name of an image')
  })

  it('loses no image when many are published at once, in one process through several stores', async () => {
    await using temporary = await makeStore()
    const stores = [temporary.store, await openImageStore(temporary.dir)]
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        publishImage(stores[index % 2] ?? temporary.store, 'compute', { squashfs: `root ${index}` }),
      ),
    )
    expect(new Set((await temporary.store.images('compute')).map(image => image.digest)).size).toBe(20)
  })
})

describe('looking up', () => {
  it('finds images by name and by digest, and says what is unknown', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const compute = await publishImage(store, 'compute', { squashfs: 'one' })
    const login = await publishImage(store, 'login', { squashfs: 'two' })
    expect(await store.resolve(login.digest)).toEqual({ name: 'login', ...login })
    expect(await store.resolve(`compute@${compute.digest.slice(0, 20)}`)).toEqual({ name: 'compute', ...compute })
    expect((await store.list()).map(image => image.name)).toEqual(['compute', 'login'])
    expect(await store.images('storage')).toEqual([])
    expect(await store.images('../names/compute')).toEqual([])
    expect(await store.latest('storage')).toBeUndefined()
    await expect(store.resolve('logn')).rejects.toMatchObject({
      code: 'IMAGE_UNKNOWN',
      message: 'no image is named logn — did you mean login?',
    })
  })

  it('gives the manifest of an image that no name lists', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const { digest, manifest } = await publishImage(store, 'compute', { squashfs: 'one' })
    await store.remove('compute', NO_ROOTS)
    expect(await store.manifest(digest)).toEqual(manifest)
    const other: Digest = `sha256:${'0'.repeat(64)}`
    await expect(store.manifest(other)).rejects.toMatchObject({ code: 'IMAGE_UNKNOWN' })
  })

  it.for([
    ['no JSON', '{', 'Expected'],
    ['something else', '{"pictures":[]}', 'images'],
    ['no digest', '{"images":[{"digest":"x"}]}', 'is not a digest'],
  ] as const)('says when a list is damaged: %s', async ([, text, why]) => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    await publishImage(store, 'login', {})
    const file = join(dir, 'names/compute.json')
    await writeFile(file, text)
    await expect(store.resolve('compute')).rejects.toMatchObject({
      code: 'IMAGE_DAMAGED',
      message: expect.stringMatching(new RegExp(`^${file}: [^]*${why}`)) as unknown,
    })
    // The others can still be used.
    expect((await store.resolve('login')).name).toBe('login')
  })

  it('ignores what else lies beside the lists', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    for (const name of ['README', 'compute.json.bak', '-x.json', '.json']) await writeFile(join(dir, 'names', name), '')
    expect(await store.names()).toEqual([])
  })
})

describe('removing', () => {
  it('takes one image off the list of its name, and the name with the last', async () => {
    await using temporary = await makeStore()
    const { store, dir } = temporary
    const first = await publishImage(store, 'compute', { squashfs: 'one' })
    const second = await publishImage(store, 'compute', { squashfs: 'two' })
    expect(await store.remove(first.digest, NO_ROOTS)).toEqual({ name: 'compute', digest: first.digest })
    expect((await store.images('compute')).map(image => image.digest)).toEqual([second.digest])
    await store.remove('compute', NO_ROOTS)
    expect(await readdir(join(dir, 'names'))).toEqual([])
    await expect(store.remove('compute', NO_ROOTS)).rejects.toMatchObject({ code: 'IMAGE_UNKNOWN' })
  })

  it('is refused while something uses the image, and says what', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const { digest } = await publishImage(store, 'compute', { squashfs: 'one' })
    const roots = { uses: new Map([[digest, '12 nodes']]) }
    await expect(store.remove('compute', roots)).rejects.toMatchObject({
      code: 'IMAGE_IN_USE',
      message: `compute@${digest.slice(0, 19)} is in use by 12 nodes`,
    })
    expect(await store.names()).toEqual(['compute'])
  })

  it('works for an image whose manifest is gone', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const { digest } = await publishImage(store, 'compute', {})
    await rm(store.pathOf(hexOf(digest)))
    await store.remove('compute', NO_ROOTS)
    expect(await store.names()).toEqual([])
  })
})

describe('counting', () => {
  it('says by how many images a blob is used', async () => {
    await using temporary = await makeStore()
    const { store } = temporary
    const first = await publishImage(store, 'compute', { kernel: 'vmlinuz', squashfs: 'one' })
    const second = await publishImage(store, 'login', { kernel: 'vmlinuz', squashfs: 'two', initrd: 'two' })
    await store.put('that nobody needs')
    const [kernel, one] = first.manifest.artefacts.map(artefact => artefact.sha256)
    const two = second.manifest.artefacts[1]?.sha256
    const expected: [string | undefined, number][] = [
      [kernel, 2],
      [one, 1],
      [two, 1],
      [hexOf(first.digest), 1],
      [hexOf(second.digest), 1],
    ]
    expect(await store.references()).toEqual(new Map(expected))
  })
})
