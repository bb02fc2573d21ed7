import { chmod, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Digest } from '../manifest.ts'
import type { CollectOptions } from './collect.ts'
import { hexOf } from './contents.ts'
import { NO_ROOTS, makeStore, problems, publishImage, wholeBlobs } from './testing.ts'

const LONG_AGO = new Date('2020-01-01T00:00:00Z')
const ago = (minutes: number): Date => new Date(Date.now() - minutes * 60_000)

/** All blobs are old. */
async function aged(now?: () => Date) {
  const temporary = await makeStore(now)
  const { store, dir } = temporary
  const compute = await publishImage(store, 'compute', { kernel: 'vmlinuz', squashfs: 'one' })
  const login = await publishImage(store, 'login', { kernel: 'vmlinuz', squashfs: 'two!' })
  const unused = await store.put('that nobody needs')
  for (const sha256 of await wholeBlobs(dir)) await utimes(store.pathOf(sha256), LONG_AGO, LONG_AGO)
  const gc = (options: Partial<CollectOptions> = {}) => store.gc({ roots: NO_ROOTS, ...options })
  return { ...temporary, compute, login, unused, gc }
}

describe('cleaning up', () => {
  it('removes what no image needs, and nothing else', async () => {
    await using temporary = await aged()
    const { store, unused, gc } = temporary
    expect(await gc()).toEqual({ removed: [unused], kept: 5, stale: 0, bytes: 17 })
    expect(await store.has(unused.sha256)).toBe(false)
    expect(await problems(store)).toEqual([])
    expect(await gc()).toEqual({ removed: [], kept: 5, stale: 0, bytes: 0 })
  })

  it('only says what it would remove, if asked to', async () => {
    await using temporary = await aged()
    const { store, unused, gc } = temporary
    expect(await gc({ dryRun: true })).toEqual({ removed: [unused], kept: 5, stale: 0, bytes: 17 })
    expect(await store.has(unused.sha256)).toBe(true)
  })

  it('removes the content of an image that was removed, but for what others share', async () => {
    await using temporary = await aged()
    const { store, login, unused, gc } = temporary
    await store.remove('login', NO_ROOTS)
    const squashfs = login.manifest.artefacts[1]?.sha256
    const removed = (await gc()).removed.map(blob => blob.sha256)
    expect(new Set(removed)).toEqual(new Set([hexOf(login.digest), squashfs, unused.sha256]))
  })

  it('keeps a removed image that something still uses', async () => {
    await using temporary = await aged()
    const { store, login, unused, gc } = temporary
    await store.remove('login', NO_ROOTS)
    const gone: Digest = `sha256:${'0'.repeat(64)}`
    const roots = {
      uses: new Map([
        [login.digest, 'channel stable'],
        [gone, '3 nodes'],
      ] as const),
    }
    expect((await gc({ roots })).removed).toEqual([unused])
    expect(await store.manifest(login.digest)).toEqual(login.manifest)
  })

  it('keeps what is young: for an hour, or as long as asked', async () => {
    await using temporary = await aged()
    const { store, unused, gc } = temporary
    await utimes(store.pathOf(unused.sha256), ago(59), ago(59))
    expect((await gc()).removed).toEqual([])
    expect((await gc({ grace: 58 * 60_000, dryRun: true })).removed).toEqual([unused])
    await utimes(store.pathOf(unused.sha256), ago(61), ago(61))
    expect((await gc()).removed).toEqual([unused])
  })

  it('keeps what was just asked for', async () => {
    await using temporary = await aged()
    const { store, unused, gc } = temporary
    expect(await store.missing([unused.sha256])).toEqual([])
    expect((await gc()).removed).toEqual([])
  })

  it('removes temporary files of processes that ended, when they are old', async () => {
    await using temporary = await aged()
    const { store, dir, gc } = temporary
    const mine = store.temporary()
    const files = [mine, `${dir}/tmp/4194305-1.0a`, `${dir}/tmp/0-0.0b.${'0'.repeat(64)}`, `${dir}/tmp/rubbish`]
    const young = `${dir}/tmp/4194305-1.0c`
    for (const file of [...files, young]) await writeFile(file, '12345')
    for (const file of files) await utimes(file, LONG_AGO, LONG_AGO)
    expect(await gc()).toMatchObject({ stale: 3, bytes: 17 + 15 })
    expect((await readdir(join(dir, 'tmp'))).map(name => join(dir, 'tmp', name)).sort()).toEqual([mine, young].sort())
  })

  it('leaves alone what is not its own', async () => {
    await using temporary = await aged()
    const { dir, gc } = temporary
    const strange = [`${dir}/blobs/sha256/README`, `${dir}/blobs/sha256/ab${'0'.repeat(62)}`]
    for (const file of strange) {
      await writeFile(file, '')
      await utimes(file, LONG_AGO, LONG_AGO)
    }
    expect((await gc()).removed.length).toBe(1)
    expect(await readdir(join(dir, 'blobs/sha256'))).toEqual(expect.arrayContaining(['README']))
  })

  it('removes nothing while it cannot know what an image needs', async () => {
    await using temporary = await aged()
    const { store, compute, unused, gc } = temporary
    const file = store.pathOf(hexOf(compute.digest))
    await chmod(file, 0o600)
    await writeFile(file, 'rubbish')
    const { sha256 = '', size } = compute.manifest.artefacts[1] ?? {}
    const squashfs = { sha256, size }
    await expect(gc()).rejects.toMatchObject({
      code: 'IMAGE_DAMAGED',
      message: expect.stringContaining(`compute@${compute.digest.slice(0, 19)} cannot be read`) as unknown,
      hint: expect.stringContaining('nothing was removed') as unknown,
    })
    expect(await store.has(unused.sha256)).toBe(true)
    await store.remove('compute', NO_ROOTS)
    expect(new Set((await gc()).removed)).toEqual(new Set([squashfs, unused]))
  })
})
