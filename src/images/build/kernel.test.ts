import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import type { Entry } from '../../lib/tree/entry.ts'
import { failureOf, temporaryDir } from '../../site/testing.ts'
import { type MergedTree, mergeLayers } from '../layers/merge.ts'
import { compareVersions, findKernel, versionOf } from './kernel.ts'

const common = { mode: 0o644, uid: 0, gid: 0, mtime: 0 }

/** A tree with these files, and the directories they need. */
function treeWith(...paths: string[]): MergedTree {
  const directories = new Set(
    paths.flatMap(path => path.split('/').map((_, at, parts) => parts.slice(0, at).join('/'))),
  )
  const entries: Entry[] = [
    ...[...directories].sort().map(path => ({ ...common, type: 'directory' as const, path })),
    ...paths.map(path => ({ ...common, type: 'file' as const, path, size: 1, sha256: '' })),
  ]
  return mergeLayers([{ root: '/layer', entries, gone: [], opaque: [] }])
}

const found = (tree: MergedTree, version = '*'): readonly [string | undefined, string | undefined] => {
  const kernel = findKernel(tree, { version, modules: [] }, 'base')
  return [kernel?.version, kernel?.file.path]
}

describe('the kernel of a tree', () => {
  test.each<readonly [string, string, string]>([
    ['Debian', 'boot/vmlinuz-6.1.0-30-amd64', '6.1.0-30-amd64'],
    ['an uncompressed one', 'boot/vmlinux-6.1.0', '6.1.0'],
    ['arm64 here and there', 'boot/Image-6.4.0-150600.23-default', '6.4.0-150600.23-default'],
    ['Fedora and Rocky', 'usr/lib/modules/6.5.6-300.fc39.x86_64/vmlinuz', '6.5.6-300.fc39.x86_64'],
    ['without a merged /usr', 'lib/modules/5.14.0-70.el9/vmlinuz', '5.14.0-70.el9'],
  ])('where it lies: %s', (_, path, version) => {
    expect(found(treeWith(path))).toEqual([version, path])
  })

  test('of several it is the newest', () => {
    const tree = treeWith('boot/vmlinuz-6.1.0-9-amd64', 'boot/vmlinuz-6.1.0-10-amd64', 'boot/vmlinuz-5.10.0-99-amd64')
    expect(found(tree)).toEqual(['6.1.0-10-amd64', 'boot/vmlinuz-6.1.0-10-amd64'])
  })

  test('of those the recipe allows', () => {
    const tree = treeWith(
      'boot/vmlinuz-6.1.0-9-amd64',
      'boot/vmlinuz-6.12.1-cloud-amd64',
      'boot/vmlinuz-6.1.0-10-amd64',
    )
    expect(found(tree, '6.1.*')[0]).toBe('6.1.0-10-amd64')
    expect(found(tree, '*-cloud-*')[0]).toBe('6.12.1-cloud-amd64')
    expect(found(tree, '6.1.0-9-amd64')[0]).toBe('6.1.0-9-amd64')
  })

  test('of one that lies in both places it is the one in /boot', () => {
    expect(found(treeWith('boot/vmlinuz-6.1', 'usr/lib/modules/6.1/vmlinuz'))).toEqual(['6.1', 'boot/vmlinuz-6.1'])
  })

  test.each([
    'boot/vmlinuz',
    'boot/initrd.img-6.1',
    'boot/.vmlinuz-6.1.hmac',
    'usr/lib/modules/6.1/build/vmlinuz',
    'srv/boot/vmlinuz-6.1',
  ])('is not %s', path => {
    expect(findKernel(treeWith(path), undefined, 'base')).toBeUndefined()
  })

  test('is a file: where a link leads, another place says', () => {
    const link: Entry = {
      ...common,
      type: 'symlink',
      path: 'boot/vmlinuz-6.1',
      target: '../usr/lib/modules/6.1/vmlinuz',
    }
    const tree = mergeLayers([
      { root: '/a', entries: treeWith('boot/x', 'usr/lib/modules/6.1/vmlinuz').entries, gone: [], opaque: [] },
      { root: '/b', entries: [link], gone: [], opaque: [] },
    ])
    expect(found(tree)).toEqual(['6.1', 'usr/lib/modules/6.1/vmlinuz'])
  })

  test('is none where the recipe says so, or says nothing and there is none', () => {
    expect(findKernel(treeWith('boot/vmlinuz-6.1'), 'none', 'base')).toBeUndefined()
    expect(findKernel(treeWith('etc/motd'), undefined, 'base')).toBeUndefined()
    expect(findKernel(treeWith('boot/vmlinuz-6.1'), undefined, 'base')?.version).toBe('6.1')
  })

  test('that is asked for and not there is told with those that are', async () => {
    const tree = treeWith('boot/vmlinuz-6.1', 'boot/vmlinuz-6.2')
    const work = (): unknown => findKernel(tree, { version: '5.*', modules: [] }, 'compute')
    expect(await failureOf(work)).toBe('RECIPE_INVALID: compute: kernel: no kernel 5.* in the image')
    expect(work).toThrow(expect.objectContaining({ hint: 'there is 6.1, 6.2' }))
    expect(() => findKernel(treeWith('etc/motd'), { version: '*', modules: [] }, 'compute')).toThrow(
      expect.objectContaining({ hint: 'name its package under packages, such as linux-image-amd64' }),
    )
    expect(work).toThrow(MusterError)
  })
})

test.each([
  ['6.1.0-9-amd64', '6.1.0-10-amd64'],
  ['5.10.0-99', '6.1.0-1'],
  ['6.9.12', '6.10.1'],
  ['4.18.0-80.el8', '4.18.0-305.el8'],
  ['5.14.0-70.13.1.el9_0', '5.14.0-70.22.1.el9_0'],
  ['6.4.0-150600.9-default', '6.4.0-150600.23-default'],
])('%s is older than %s', (older, newer) => {
  expect(compareVersions(older, newer)).toBeLessThan(0)
  expect(compareVersions(newer, older)).toBeGreaterThan(0)
  expect(compareVersions(newer, newer)).toBe(0)
})

/** As in Documentation/arch/x86/boot.rst: the signature at 0x202, the place of the text, less 0x200, at 0x20e. */
async function kernelWith({
  text = '6.1.0-30-amd64 (who@where) #1 SMP',
  at = 0x3a00,
  signature = 'HdrS',
  size = 40_000,
}): Promise<string> {
  const bytes = Buffer.alloc(65_536)
  bytes.write(signature, 0x202, 'latin1')
  bytes.writeUInt16LE(at - 0x200, 0x20e)
  bytes.write(text, at, 'latin1')
  const file = join(await temporaryDir(), 'vmlinuz')
  await writeFile(file, bytes.subarray(0, size))
  return file
}

describe('the release a kernel says it is', () => {
  test('is the first word of its text', async () => {
    expect(await versionOf(await kernelWith({}))).toBe('6.1.0-30-amd64')
  })

  test('wherever in the header it is', async () => {
    expect(await versionOf(await kernelWith({ at: 0x210, text: '5.14.0-70.el9\0' }))).toBe('5.14.0-70.el9')
  })

  test('is not longer than any release is', async () => {
    expect((await versionOf(await kernelWith({ text: '6'.repeat(500) })))?.length).toBe(64)
  })

  test.each<readonly [string, Parameters<typeof kernelWith>[0]]>([
    ['of another architecture', { signature: 'MZ\0\0' }],
    ['that is cut off', { size: 0x20e }],
    ['whose text is missing', { text: '' }],
    ['whose text lies behind its end', { at: 0x9000, size: 0x8000 }],
    ['whose text is no text', { text: '\u0001\u0002' }],
  ])('is not known of one %s', async (_, options) => {
    expect(await versionOf(await kernelWith(options))).toBeUndefined()
  })

  test('is not known of an empty file', async () => {
    const file = join(await temporaryDir(), 'empty')
    await writeFile(file, '')
    expect(await versionOf(file)).toBeUndefined()
  })
})
