import { createHash } from 'node:crypto'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../lib/tree/entry.ts'
import { failureOf } from '../site/testing.ts'
import { fileListDigest, packFileList, readChangedFiles, readFileList } from './file-list.ts'
import type { Digest, Manifest } from './manifest.ts'
import { makeManifest, makeStore } from './store/testing.ts'
import type { ImageStore } from './store/store.ts'

const SHA = 'ab'.repeat(32)
const ENTRIES: readonly Entry[] = [
  { path: '', type: 'directory', mode: 0o755, uid: 0, gid: 0, mtime: 1 },
  {
    path: 'a\n"ü',
    type: 'file',
    mode: 0o644,
    uid: 0,
    gid: 0,
    mtime: 1,
    size: 1,
    sha256: SHA,
    xattrs: { 'user.a': 'eA==' },
  },
  { path: 'b', type: 'file', mode: 0o644, uid: 0, gid: 0, mtime: 1, size: 1, sha256: SHA, linkTo: 'a\n"ü' },
  { path: 'c', type: 'symlink', mode: 0o777, uid: 0, gid: 0, mtime: 1, target: '../x' },
  { path: 'd', type: 'char', mode: 0o600, uid: 0, gid: 0, mtime: 1, major: 1, minor: 3 },
]

test('one entry per line, compressed', async () => {
  const text = zstdDecompressSync(await packFileList(ENTRIES.slice(0, 2))).toString('utf8')
  expect(text).toBe(
    '{"path":"","type":"directory","mode":493,"uid":0,"gid":0,"mtime":1}\n' +
      `{"path":"a\\n\\"ü","type":"file","mode":420,"uid":0,"gid":0,"mtime":1,"size":1,"sha256":"${SHA}","xattrs":{"user.a":"eA=="}}\n`,
  )
})

test('its digest is that of the text: the identity of a tree, whatever forms it is packed in', async () => {
  const text = zstdDecompressSync(await packFileList(ENTRIES))
  expect(fileListDigest(ENTRIES)).toBe(`sha256:${createHash('sha256').update(text).digest('hex')}`)
  expect(fileListDigest([])).toBe(`sha256:${createHash('sha256').digest('hex')}`)
  expect(fileListDigest(ENTRIES.toReversed())).not.toBe(fileListDigest(ENTRIES))
})

async function manifestOf(store: ImageStore, bytes: Uint8Array, tree = fileListDigest(ENTRIES)): Promise<Manifest> {
  return makeManifest('compute', [{ type: 'files', ...(await store.put(bytes)) }], { tree })
}

describe('read from a store', () => {
  test('as it was written', async () => {
    await using world = await makeStore()
    const manifest = await manifestOf(world.store, await packFileList(ENTRIES))
    expect(await readFileList(world.store, manifest)).toEqual(ENTRIES)
  })

  test('only what is not the same in both', async () => {
    await using world = await makeStore()
    const [root, file, ...others] = ENTRIES as [Entry, Entry, ...Entry[]]
    const later = [root, { ...file, mode: 0o600 }, ...others.slice(1)]
    const before = await manifestOf(world.store, await packFileList(ENTRIES))
    const after = await manifestOf(world.store, await packFileList(later), fileListDigest(later))
    expect(await readChangedFiles(world.store, before, after)).toEqual({
      before: ENTRIES.slice(1, 3),
      after: [{ ...file, mode: 0o600 }],
    })
    expect(await readChangedFiles(world.store, after, after)).toEqual({ before: [], after: [] })
  })

  test('of an image that has none', async () => {
    await using world = await makeStore()
    expect(await failureOf(() => readFileList(world.store, makeManifest('compute', [])))).toBe(
      'IMAGE_INCOMPLETE: image compute has no list of files',
    )
  })

  test('that is another one than its manifest names', async () => {
    await using world = await makeStore()
    const manifest = await manifestOf(world.store, await packFileList(ENTRIES.slice(1)))
    expect(await failureOf(() => readFileList(world.store, manifest))).toBe(
      'IMAGE_DAMAGED: the list of files of compute is not the one its manifest names',
    )
  })

  test('is held against its manifest before anybody believes it', async () => {
    await using world = await makeStore()
    const forged = ENTRIES.map(entry => ({ ...entry, uid: 0, mode: 0o4755 }))
    const manifest = await manifestOf(
      world.store,
      zstdCompressSync(forged.map(entry => `${JSON.stringify(entry)}\n`).join('')),
    )
    expect(await failureOf(() => readFileList(world.store, manifest))).toMatch(/^IMAGE_DAMAGED: /)
  })

  test('that is no list at all', async () => {
    await using world = await makeStore()
    const manifest = await manifestOf(world.store, Buffer.from('rubbish'))
    expect(await failureOf(() => readFileList(world.store, manifest))).toBe(
      'IMAGE_DAMAGED: the list of files of compute cannot be read',
    )
  })

  const [TOP, FILE] = ENTRIES as readonly [Entry, Entry]
  test.each<readonly [string, unknown]>([
    ['no JSON', undefined],
    ['no entry', {}],
    ['a path that climbs', { ...FILE, path: '../a' }],
    ['a path that climbs in the middle', { ...FILE, path: 'a/../../b' }],
    ['an absolute path', { ...FILE, path: '/etc/shadow' }],
    ['a path with a NUL', { ...FILE, path: 'a\0b' }],
    ['a first name that climbs', { ...FILE, linkTo: '../a' }],
    ['a digest that is none', { ...FILE, sha256: 'x' }],
    ['a mode that is none', { ...FILE, mode: -1 }],
    ['a type nobody knows', { ...FILE, type: 'door' }],
    ['a key nobody knows', { ...FILE, more: 1 }],
  ])('that holds %s', async (_, entry) => {
    await using world = await makeStore()
    const text = `${JSON.stringify(TOP)}\n${JSON.stringify(entry) ?? '{'}\n`
    const tree: Digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
    const manifest = await manifestOf(world.store, zstdCompressSync(text), tree)
    expect(await failureOf(() => readFileList(world.store, manifest))).toBe(
      'IMAGE_DAMAGED: the list of files of compute is damaged in line 2',
    )
  })
})
