import { expect, test } from 'vitest'
import type { Entry } from '../lib/tree/entry.ts'
import { failureOf } from '../site/testing.ts'
import { contentOf, packagesOf } from './content.ts'
import { fileListDigest, packFileList } from './file-list.ts'
import { packageListText } from './packages/list.ts'
import type { InstalledPackage } from './packages/package.ts'
import { makeManifest, makeStore } from './store/testing.ts'

const ENTRIES: readonly Entry[] = [{ path: '', type: 'directory', mode: 0o755, uid: 0, gid: 0, mtime: 1 }]
const PACKAGES: readonly InstalledPackage[] = [
  { name: 'bash', version: '5.2-1', arch: 'amd64', manager: 'dpkg', source: 'bash', size: 7_000_000 },
]

test('what an image holds, as its artefacts say', async () => {
  await using world = await makeStore()
  const { store } = world
  const manifest = makeManifest(
    'compute',
    [
      { type: 'files', ...(await store.put(await packFileList(ENTRIES))) },
      { type: 'packages', ...(await store.put(packageListText(PACKAGES))) },
    ],
    { tree: fileListDigest(ENTRIES) },
  )
  expect(await packagesOf(store, manifest)).toEqual(PACKAGES)
  expect(await contentOf(store, manifest)).toEqual({ packages: PACKAGES, entries: ENTRIES })
})

test('an image without a list of packages has none', async () => {
  await using world = await makeStore()
  expect(await packagesOf(world.store, makeManifest('compute', []))).toEqual([])
})

test('one without a list of files cannot tell', async () => {
  await using world = await makeStore()
  expect(await failureOf(() => contentOf(world.store, makeManifest('compute', [])))).toBe(
    'IMAGE_INCOMPLETE: image compute has no list of files',
  )
})

test('one whose list is gone says so', async () => {
  await using world = await makeStore()
  const manifest = makeManifest('compute', [{ type: 'packages', sha256: 'ab'.repeat(32), size: 5 }])
  expect(await failureOf(() => packagesOf(world.store, manifest))).toMatch(/^BLOB_UNKNOWN: /)
})
