import { chmod, chown, link, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../lib/exec.ts'
import { entriesIn } from '../lib/pack/testing.ts'
import { failureOf, temporaryDir, writeFiles } from '../site/testing.ts'
import { FILE_NAMES, exportImage } from './export.ts'
import { ARTEFACT_TYPES, manifestText } from './manifest.ts'
import { importImage } from './import.ts'
import { readFileList } from './file-list.ts'
import { openTree } from './open-tree.ts'
import type { ResolvedImage } from './store/store.ts'
import { type TestStore, makeManifest, makeStore } from './store/testing.ts'

const signal = new AbortController().signal
const REPORT = { begin: () => {}, output: () => {}, note: () => {}, end: () => {} }

let world: TestStore
let image: ResolvedImage

/** A root with something of everything, in a store. */
beforeAll(async () => {
  world = await makeStore()
  const root = join(world.dir, '..', 'source')
  await mkdir(root)
  await chmod(root, 0o755)
  await writeFiles(root, { 'etc/motd': 'hello\n', 'bin/tool': '#!/bin/sh\n', 'dir/é ü': 'x' })
  await chown(join(root, 'dir/é ü'), 1000, 900)
  await chmod(join(root, 'bin/tool'), 0o4755)
  await link(join(root, 'etc/motd'), join(root, 'etc/welcome'))
  await symlink('../etc/motd', join(root, 'dir/link'))
  await exec('mkfifo', [join(root, 'dir/fifo')])
  await exec('mknod', [join(root, 'dir/null'), 'c', '1', '3'])
  await exec('setfattr', ['-n', 'user.note', '-v', 'x', join(root, 'bin/tool')])
  await exec('find', [root, '-exec', 'touch', '--no-dereference', '--date=@1700000000', '{}', '+'])
  const { store } = world
  const { digest, manifest } = await importImage({
    name: 'compute',
    source: { kind: 'tree', path: root },
    arch: 'amd64',
    cwd: '/',
    store,
    report: REPORT,
    signal,
  })
  image = { name: 'compute', digest, manifest }
})
afterAll(() => world[Symbol.asyncDispose]())

const target = async (name: string): Promise<string> => join(await temporaryDir(), 'not/there/yet', name)
const besides = async (to: string): Promise<string[]> => readdir(join(to, '..'))

describe('opened', () => {
  test('the root of an image, unpacked for a while', async () => {
    let root = ''
    {
      await using open = await openTree(world.store, image.manifest, signal)
      root = open.root
      expect(open.tree.entries).toEqual(await readFileList(world.store, image.manifest))
      expect(await entriesIn(root)).toEqual(open.tree.entries)
      const motd = open.tree.entries.find(entry => entry.path === 'etc/motd')
      expect(motd?.type === 'file' && (await readFile(open.tree.locate(motd), 'utf8'))).toBe('hello\n')
    }
    await expect(stat(root)).rejects.toThrow('ENOENT')
    expect(await readdir(join(world.dir, 'work'))).toEqual([])
  })

  test('not without a squashfs', async () => {
    const manifest = {
      ...image.manifest,
      artefacts: image.manifest.artefacts.filter(({ type }) => type !== 'squashfs'),
    }
    expect(await failureOf(() => openTree(world.store, manifest, signal))).toBe(
      'IMAGE_INCOMPLETE: image compute has no squashfs to unpack',
    )
  })

  test('not when it is damaged; then nothing is left behind', async () => {
    const blob = await world.store.put('no squashfs at all')
    const artefacts = image.manifest.artefacts.map(one => (one.type === 'squashfs' ? { ...one, ...blob } : one))
    expect(await failureOf(() => openTree(world.store, { ...image.manifest, artefacts }, signal))).toMatch(
      /^ARCHIVE_INVALID: /,
    )
    expect(await readdir(join(world.dir, 'work'))).toEqual([])
  })
})

describe('as a directory', () => {
  test('plain files under plain names, with the manifest and checksums', async () => {
    const to = await target('out')
    await exportImage(world.store, image, 'directory', to, signal)
    expect((await readdir(to)).sort()).toEqual(
      [
        'SHA256SUMS',
        'build.log',
        'files.jsonl.zst',
        'manifest.json',
        'packages.json',
        'root.cpio.zst',
        'root.squashfs',
        'sbom.spdx.json',
      ].sort(),
    )
    expect(await readFile(join(to, 'manifest.json'), 'utf8')).toBe(manifestText(image.manifest))
    const { stdout } = await exec('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: to })
    expect(
      stdout
        .toString('utf8')
        .split('\n')
        .filter(line => line.endsWith(': OK')).length,
    ).toBe(image.manifest.artefacts.length)
    expect(await besides(to)).toEqual(['out'])
  })

  test('every kind of artefact has a name of its own', () => {
    expect(Object.keys(FILE_NAMES).sort()).toEqual([...ARTEFACT_TYPES].sort())
    expect(new Set(Object.values(FILE_NAMES)).size).toBe(ARTEFACT_TYPES.length)
  })

  test('into an empty directory', async () => {
    const to = await temporaryDir()
    await exportImage(world.store, image, 'directory', to, signal)
    expect(await readdir(to)).toContain('root.squashfs')
  })

  test('not over something that is there', async () => {
    const to = await temporaryDir()
    await writeFile(join(to, 'precious'), '')
    expect(await failureOf(() => exportImage(world.store, image, 'directory', to, signal))).toBe(
      `FILE_UNWRITABLE: ${to} is not empty`,
    )
    expect(await readdir(to)).toEqual(['precious'])
  })

  test('whole or not at all', async () => {
    const manifest = makeManifest('compute', [
      ...image.manifest.artefacts,
      { type: 'kernel', sha256: 'ab'.repeat(32), size: 1 },
    ])
    const to = await target('out')
    await expect(exportImage(world.store, { ...image, manifest }, 'directory', to, signal)).rejects.toThrow('ENOENT')
    expect(await besides(to)).toEqual([])
  })
})

describe('as an archive', () => {
  test('tar unpacks the root as it was', async () => {
    const to = await target('root.tar')
    await exportImage(world.store, image, 'tar', to, signal)
    const root = await temporaryDir()
    await exec('tar', [
      '--extract',
      '--file',
      to,
      '--directory',
      root,
      '--xattrs',
      '--xattrs-include=*',
      '--same-owner',
      '--preserve-permissions',
    ])
    expect(await entriesIn(root)).toEqual(await readFileList(world.store, image.manifest))
    expect(await besides(to)).toEqual(['root.tar'])
  })

  test('the same bytes every time', async () => {
    const [one, other] = [await target('a.tar'), await target('b.tar')]
    await exportImage(world.store, image, 'tar', one, signal)
    await exportImage(world.store, image, 'tar', other, signal)
    expect((await readFile(one)).equals(await readFile(other))).toBe(true)
  })

  test('whole or not at all', async () => {
    const to = await target('root.tar')
    await expect(exportImage(world.store, image, 'tar', to, AbortSignal.abort())).rejects.toThrow(/./)
    expect(await besides(to)).toEqual([])
  })

  test('not over something that is there', async () => {
    const to = join(await temporaryDir(), 'root.tar')
    await writeFile(to, 'precious')
    expect(await failureOf(() => exportImage(world.store, image, 'tar', to, signal))).toBe(
      `FILE_UNWRITABLE: ${to} is there already`,
    )
    expect(await readFile(to, 'utf8')).toBe('precious')
  })
})

describe('as a container image', () => {
  test('skopeo reads it, with what it is', async () => {
    const to = await target('oci')
    await exportImage(world.store, image, 'oci', to, signal)
    const { stdout } = await exec('skopeo', ['--override-arch=amd64', 'inspect', `oci:${to}:latest`])
    expect(JSON.parse(stdout.toString('utf8'))).toMatchObject({
      Architecture: 'amd64',
      Created: image.manifest.created,
      Labels: {
        'org.opencontainers.image.title': 'compute',
        'org.opencontainers.image.created': image.manifest.created,
        'muster.image.digest': image.digest,
        'muster.image.inputs': image.manifest.inputs,
      },
    })
  })

  test('umoci unpacks the root as it was', async () => {
    const to = await target('oci')
    await exportImage(world.store, image, 'oci', to, signal)
    const root = join(await temporaryDir(), 'root')
    await exec('umoci', ['--log=error', 'raw', 'unpack', '--image', `${to}:latest`, root])
    expect(await entriesIn(root)).toEqual(await readFileList(world.store, image.manifest))
  })

  test('says which commit it is from, where one is known', async () => {
    const to = await target('oci')
    const manifest = { ...image.manifest, source: { commit: 'c0ffee', dirty: false } }
    await exportImage(world.store, { ...image, manifest }, 'oci', to, signal)
    const { stdout } = await exec('skopeo', ['--override-arch=amd64', 'inspect', `oci:${to}:latest`])
    expect(JSON.parse(stdout.toString('utf8'))).toMatchObject({
      Labels: { 'org.opencontainers.image.revision': 'c0ffee' },
    })
  })

  test('not over something that is there', async () => {
    const to = await temporaryDir()
    await writeFile(join(to, 'precious'), '')
    expect(await failureOf(() => exportImage(world.store, image, 'oci', to, signal))).toBe(
      `FILE_UNWRITABLE: ${to} is not empty`,
    )
  })
})
