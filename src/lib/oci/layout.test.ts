import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { exec } from '../exec.ts'
import type { Entry, FileTree } from '../tree/entry.ts'
import { type OciOptions, writeOciLayout } from './layout.ts'

let dir: string
let layout: string
let count = 0
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-oci-'))
  await mkdir(join(dir, 'root/bin'), { recursive: true })
  await writeFile(join(dir, 'root/bin/hello'), '#!/bin/sh\n')
  // More than one block of compressed data.
  await writeFile(join(dir, 'root/large'), Buffer.alloc(9_000_000, 'some text that is repeated '))
  await symlink('/usr/lib', join(dir, 'root/lib'))
  await exec('ln', [join(dir, 'root/bin/hello'), join(dir, 'root/other')])
  await exec('chmod', ['4755', join(dir, 'root/bin/hello')])
  await exec('find', [join(dir, 'root'), '-exec', 'touch', '-h', '-d', '@1700000000', '{}', '+'])
})
afterAll(() => rm(dir, { recursive: true }))
beforeEach(() => {
  layout = join(dir, `layout${count++}`, 'image')
})

const common = { mode: 0o755, uid: 0, gid: 0, mtime: 1_700_000_000, sha256: '' }
const ENTRIES: readonly Entry[] = [
  { ...common, path: '', type: 'directory' },
  { ...common, path: 'bin', type: 'directory' },
  { ...common, path: 'bin/hello', type: 'file', size: 10, mode: 0o4755 },
  { ...common, path: 'large', type: 'file', size: 9_000_000, mode: 0o644 },
  { ...common, path: 'lib', type: 'symlink', target: '/usr/lib', mode: 0o777 },
  { ...common, path: 'other', type: 'file', size: 10, mode: 0o4755, linkTo: 'bin/hello' },
]
const treeOf = (entries: readonly Entry[]): FileTree => ({ entries, locate: file => join(dir, 'root', file.path) })
const TREE = treeOf(ENTRIES)
const OPTIONS: OciOptions = {
  arch: 'amd64',
  created: '2025-01-02T03:04:05Z',
  labels: { 'org.opencontainers.image.title': 'compute', 'org.example.digest': 'sha256:1' },
  tag: 'compute',
  cmd: ['/bin/hello'],
}

const blob = (digest: string): Promise<Buffer> => readFile(join(layout, 'blobs', digest.replace(':', '/')))
const json = (bytes: Buffer): unknown => JSON.parse(bytes.toString('utf8')) as unknown
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

test('has every document the specification asks for', async () => {
  const { manifestDigest } = await writeOciLayout(TREE, layout, OPTIONS)
  expect((await readdir(layout)).toSorted()).toEqual(['blobs', 'index.json', 'oci-layout'])
  expect(json(await readFile(join(layout, 'oci-layout')))).toEqual({ imageLayoutVersion: '1.0.0' })
  expect(json(await readFile(join(layout, 'index.json')))).toEqual({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        digest: manifestDigest,
        size: (await blob(manifestDigest)).length,
        annotations: { 'org.opencontainers.image.ref.name': 'compute' },
        platform: { architecture: 'amd64', os: 'linux' },
      },
    ],
  })

  const manifest = json(await blob(manifestDigest)) as { config: { digest: string }; layers: { digest: string }[] }
  const config = await blob(manifest.config.digest)
  const layer = await blob(manifest.layers[0]?.digest ?? '')
  expect(manifest).toEqual({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: sha256(config),
      size: config.length,
    },
    layers: [
      {
        mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
        digest: sha256(layer),
        size: layer.length,
      },
    ],
  })
  expect(await readdir(join(layout, 'blobs/sha256'))).toHaveLength(3)

  const diffId = 'sha256:d02c748b03970960580e248ff610340c61cbb73cc21f8a11d79e3d584df25aa5'
  expect(sha256(gunzipSync(layer))).toBe(diffId)
  expect(json(config)).toEqual({
    created: '2025-01-02T03:04:05Z',
    architecture: 'amd64',
    os: 'linux',
    config: {
      Cmd: ['/bin/hello'],
      Labels: { 'org.example.digest': 'sha256:1', 'org.opencontainers.image.title': 'compute' },
    },
    rootfs: { type: 'layers', diff_ids: [diffId] },
    history: [{ created: '2025-01-02T03:04:05Z', created_by: 'muster' }],
  })
})

test('the same tree is the same image', async () => {
  const first = await writeOciLayout(TREE, layout, OPTIONS)
  const labels = Object.fromEntries(Object.entries(OPTIONS.labels).toReversed())
  expect(await writeOciLayout(TREE, `${layout}2`, { ...OPTIONS, labels })).toEqual(first)
  await exec('diff', ['-r', layout, `${layout}2`])
})

test('skopeo knows what it is', async () => {
  const { manifestDigest } = await writeOciLayout(TREE, layout, { ...OPTIONS, arch: 'arm64' })
  const { stdout } = await exec('skopeo', ['--override-arch', 'arm64', 'inspect', `oci:${layout}:compute`])
  expect(json(stdout)).toMatchObject({
    Digest: manifestDigest,
    Created: '2025-01-02T03:04:05Z',
    Labels: { 'org.example.digest': 'sha256:1', 'org.opencontainers.image.title': 'compute' },
    Architecture: 'arm64',
    Os: 'linux',
  })
})

test('skopeo copies it as it is', async () => {
  const { manifestDigest } = await writeOciLayout(TREE, layout, OPTIONS)
  await exec('skopeo', ['--insecure-policy', 'copy', `oci:${layout}:compute`, `oci:${layout}-copy:x`])
  const { stdout } = await exec('skopeo', ['inspect', '--format', '{{.Digest}}', `oci:${layout}-copy:x`])
  expect(stdout.toString().trim()).toBe(manifestDigest)
})

test('umoci unpacks the root it was made of', async () => {
  await writeOciLayout(TREE, layout, OPTIONS)
  const out = `${layout}-root`
  await exec('umoci', ['raw', 'unpack', '--image', `${layout}:compute`, out])
  await exec('diff', ['-r', '--no-dereference', join(dir, 'root'), out])
  const { stdout } = await exec('find', ['.', '-printf', '%p %y %m %U %G %n %T@\n'], { cwd: out })
  expect(stdout.toString().split('\n').toSorted()).toEqual([
    '',
    '. d 755 0 0 3 1700000000.0000000000',
    './bin d 755 0 0 2 1700000000.0000000000',
    './bin/hello f 4755 0 0 2 1700000000.0000000000',
    './large f 644 0 0 1 1700000000.0000000000',
    './lib l 777 0 0 1 1700000000.0000000000',
    './other f 4755 0 0 2 1700000000.0000000000',
  ])
})

test('an empty directory may be there already', async () => {
  await mkdir(layout, { recursive: true })
  await writeOciLayout(TREE, layout, OPTIONS)
  expect(await readdir(layout)).toHaveLength(3)
})

test('without a command there is none', async () => {
  const { cmd: _, ...options } = OPTIONS
  const { manifestDigest } = await writeOciLayout(TREE, layout, options)
  const { config } = json(await blob(manifestDigest)) as { config: { digest: string } }
  expect(json(await blob(config.digest))).toMatchObject({ config: { Labels: {} } })
  expect((await blob(config.digest)).toString()).not.toContain('Cmd')
})

test('a directory in use is left alone', async () => {
  await mkdir(layout, { recursive: true })
  await writeFile(join(layout, 'mine'), '')
  await expect(writeOciLayout(TREE, layout, OPTIONS)).rejects.toMatchObject({
    code: 'FILE_UNWRITABLE',
    message: `${layout} is not empty`,
  })
  expect(await readdir(layout)).toEqual(['mine'])
})

test('a file in the place of the directory is left alone', async () => {
  await mkdir(join(layout, '..'))
  await writeFile(layout, '')
  await expect(writeOciLayout(TREE, layout, OPTIONS)).rejects.toMatchObject({ code: 'FILE_UNWRITABLE' })
  expect((await stat(layout)).isFile()).toBe(true)
})

test('names that mean a deletion are refused', async () => {
  const tree = treeOf([...ENTRIES, { ...common, path: 'var/.wh.x', type: 'directory' }])
  await expect(writeOciLayout(tree, layout, OPTIONS)).rejects.toMatchObject({
    code: 'ARCHIVE_INVALID',
    message: 'var/.wh.x: a container image cannot hold a file of this name',
  })
})

test('nothing is left of what was not completed', async () => {
  const broken = treeOf([...ENTRIES, { ...common, path: 'zzz', type: 'file', size: 1 }])
  await mkdir(join(layout, '..'))
  await expect(writeOciLayout(broken, layout, OPTIONS)).rejects.toThrow('ENOENT')
  const signal = AbortSignal.abort(new Error('enough'))
  await expect(writeOciLayout(TREE, layout, { ...OPTIONS, signal })).rejects.toThrow('enough')
  expect(await readdir(join(layout, '..'))).toEqual([])
})
