import { mkdir, readFile, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exists } from '../../lib/dirs.ts'
import { exec } from '../../lib/exec.ts'
import { directoryOf, temporaryDir } from '../../site/testing.ts'
import { LayerCache } from './cache.ts'
import { scanLayer } from './scan.ts'

const TIME = 1_700_000_000
const KEY = 'ab'.repeat(32)
const OTHER = 'cd'.repeat(32)

async function cacheDir(): Promise<string> {
  return join(await temporaryDir(), 'images/layers')
}

/** What a stage left behind, beside the cache as builds have it. */
async function stageOf(content: string): Promise<string> {
  const root = join(await directoryOf({ 'upper/etc/motd': content }), 'upper')
  await exec('mknod', [join(root, 'etc/gone'), 'c', '0', '0'])
  return root
}

/** As if the machine had been started anew since. */
async function rebooted(dir: string): Promise<LayerCache> {
  for (const name of await readdir(dir)) {
    const file = join(dir, name, 'layer.json')
    const layer = JSON.parse(await readFile(file, 'utf8')) as object
    await writeFile(file, JSON.stringify({ ...layer, bootId: '00000000-0000-4000-8000-000000000000' }))
  }
  return LayerCache.open(dir)
}

describe('a layer that is kept', () => {
  test('is listed, moved and found again', async () => {
    const dir = await cacheDir()
    const cache = await LayerCache.open(dir)
    const stage = await stageOf('hello\n')
    const content = await scanLayer(stage, TIME)
    expect(await cache.find(KEY)).toBeUndefined()
    const kept = await cache.keep(KEY, stage, TIME)
    expect(kept).toEqual({ ...content, root: join(dir, KEY.slice(0, 32), 'root') })
    expect(kept.gone).toEqual(['etc/gone'])
    expect(await exists(stage)).toBe(false)
    expect(await readFile(join(kept.root, 'etc/motd'), 'utf8')).toBe('hello\n')
    expect(await cache.find(KEY)).toEqual(kept)
    expect(await (await LayerCache.open(dir)).find(KEY)).toEqual(kept)
    expect(await cache.find(OTHER)).toBeUndefined()
  })

  test('is nobody else’s business', async () => {
    const dir = await cacheDir()
    const cache = await LayerCache.open(dir)
    await cache.keep(KEY, await stageOf('secret'), TIME)
    const modes = await Promise.all(
      [dir, join(dir, KEY.slice(0, 32))].map(async path => (await stat(path)).mode & 0o777),
    )
    expect(modes).toEqual([0o700, 0o700])
  })

  test('has the time of its build, on disk too', async () => {
    const cache = await LayerCache.open(await cacheDir())
    const { root } = await cache.keep(KEY, await stageOf('x'), TIME)
    expect((await stat(join(root, 'etc/motd'))).mtimeMs).toBe(TIME * 1000)
  })

  test('may be kept by two builds at once: the first is as good as the second', async () => {
    const dir = await cacheDir()
    const [one, other] = [await LayerCache.open(dir), await LayerCache.open(dir)]
    const first = await one.keep(KEY, await stageOf('same'), TIME)
    const second = await other.keep(KEY, await stageOf('same'), TIME)
    expect(second.root).toBe(first.root)
    expect(await readFile(join(second.root, 'etc/motd'), 'utf8')).toBe('same')
    expect(await readdir(dir)).toEqual([KEY.slice(0, 32)])
  })

  test('notes when it was used last, for who cleans up', async () => {
    const dir = await cacheDir()
    const cache = await LayerCache.open(dir)
    await cache.keep(KEY, await stageOf('x'), TIME)
    await utimes(join(dir, KEY.slice(0, 32)), 1000, 1000)
    await cache.find(KEY)
    expect((await stat(join(dir, KEY.slice(0, 32)))).mtimeMs).toBeGreaterThan(1_000_000)
  })

  test('is none when its stage cannot be listed', async () => {
    const dir = await cacheDir()
    const cache = await LayerCache.open(dir)
    const stage = await stageOf('x')
    await expect(cache.keep(KEY, stage, TIME, AbortSignal.abort())).rejects.toThrow(
      expect.objectContaining({ name: 'AbortError' }),
    )
    expect([await readdir(dir), await cache.find(KEY), await exists(stage)]).toEqual([[], undefined, true])
  })
})

describe('after the machine was started anew', () => {
  test('a layer that may not have reached the disk is thrown away', async () => {
    const dir = await cacheDir()
    await (await LayerCache.open(dir)).keep(KEY, await stageOf('x'), TIME)
    const cache = await rebooted(dir)
    expect(await cache.find(KEY)).toBeUndefined()
    expect(await readdir(dir)).toEqual([])
    // And can be made again.
    await cache.keep(KEY, await stageOf('x'), TIME)
    expect(await cache.find(KEY)).toBeDefined()
  })

  test('one that has reached the disk is used', async () => {
    const dir = await cacheDir()
    const before = await LayerCache.open(dir)
    const kept = await before.keep(KEY, await stageOf('x'), TIME)
    await before.flush()
    await before.keep(OTHER, await stageOf('y'), TIME)
    const cache = await rebooted(dir)
    expect(await cache.find(KEY)).toEqual(kept)
    expect(await cache.find(OTHER)).toBeUndefined()
  })
})

test('flushing twice, or nothing, or what is gone meanwhile, is fine', async () => {
  const dir = await cacheDir()
  const cache = await LayerCache.open(dir)
  await cache.flush()
  await cache.keep(KEY, await stageOf('x'), TIME)
  await cache.keep(OTHER, await stageOf('y'), TIME)
  await rm(join(dir, OTHER.slice(0, 32)), { recursive: true })
  await cache.flush()
  await cache.flush()
  expect((await readdir(join(dir, KEY.slice(0, 32)))).sort()).toEqual(['layer.json', 'on-disk', 'root'])
  expect(await cache.find(KEY)).toBeDefined()
})

test('a directory somebody else made is used as it is', async () => {
  const dir = await temporaryDir()
  await mkdir(join(dir, 'layers'))
  const cache = await LayerCache.open(join(dir, 'layers'))
  await cache.keep(KEY, await stageOf('x'), TIME)
  expect(await cache.find(KEY)).toBeDefined()
})
