import { mkdir, readdir, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeFiles } from '../site/testing.ts'
import { pruneCaches } from './caches.ts'
import { type TestStore, makeStore, publishImage } from './store/testing.ts'

const MARCH = new Date('2026-03-01T00:00:00Z')
const [BEFORE, AFTER] = [new Date('2026-02-01T00:00:00Z'), new Date('2026-04-01T00:00:00Z')]

/** A store with a layer and a package from before March, and one of each from after it. */
async function world(): Promise<TestStore> {
  const made = await makeStore()
  await writeFiles(made.dir, {
    'layers/old/root/file': 'x'.repeat(10_000),
    'layers/new/root/file': 'y'.repeat(10_000),
    'packages/ab/abold': 'x'.repeat(300),
    'packages/ab/abnew': 'x'.repeat(500),
    'packages/cd/cdold': 'x'.repeat(20),
  })
  for (const path of ['layers/old', 'packages/ab/abold', 'packages/cd/cdold'])
    await utimes(join(made.dir, path), BEFORE, BEFORE)
  for (const path of ['layers/new', 'packages/ab/abnew']) await utimes(join(made.dir, path), AFTER, AFTER)
  return made
}

const cached = async (dir: string): Promise<string[]> =>
  (await Promise.all(['layers', 'packages/ab', 'packages/cd'].map(path => readdir(join(dir, path))))).flat().sort()

test('what no build used since then is given back', async () => {
  await using made = await world()
  const pruned = await pruneCaches(made.store, MARCH, false)
  expect(await cached(made.dir)).toEqual(['abnew', 'new'])
  expect(pruned.layers.count).toBe(1)
  expect(pruned.layers.bytes).toBeGreaterThanOrEqual(10_000)
  expect(pruned.layers.bytes).toBeLessThan(20_000)
  expect(pruned.packages).toEqual({ count: 2, bytes: 320 })
})

test('or only counted', async () => {
  await using made = await world()
  const counted = await pruneCaches(made.store, MARCH, true)
  expect(await cached(made.dir)).toEqual(['abnew', 'abold', 'cdold', 'new', 'old'])
  expect(await pruneCaches(made.store, MARCH, false)).toEqual(counted)
})

test('notes and logs go with their images', async () => {
  await using made = await makeStore()
  const { store, dir } = made
  const { digest, manifest } = await publishImage(store, 'compute', { squashfs: 'root' })
  const [hex, kept, gone] = [digest.slice('sha256:'.length), manifest.artefacts[0]?.sha256 ?? '', 'ab'.repeat(32)]
  await writeFiles(dir, {
    [`indexes/${kept}.json`]: '{}',
    [`indexes/${gone}.json`]: '{}',
    [`logs/compute/${hex}.log`]: '',
    [`logs/compute/${gone}.log`]: '',
    'logs/compute/last.log': '',
    [`logs/other/${hex}.log`]: '',
  })
  await pruneCaches(store, MARCH, true)
  expect((await readdir(join(dir, 'logs/compute'))).length).toBe(3)
  await pruneCaches(store, MARCH, false)
  expect(await readdir(join(dir, 'indexes'))).toEqual([`${kept}.json`])
  expect((await readdir(join(dir, 'logs/compute'))).sort()).toEqual([`${hex}.log`, 'last.log'].sort())
  expect(await readdir(join(dir, 'logs/other'))).toEqual([])
})

test('where nothing was built there is nothing', async () => {
  await using made = await makeStore()
  await mkdir(join(made.dir, 'layers'))
  expect(await pruneCaches(made.store, MARCH, false)).toEqual({
    layers: { count: 0, bytes: 0 },
    packages: { count: 0, bytes: 0 },
  })
})
