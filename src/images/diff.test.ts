import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DirectoryEntry, Entry, FileEntry, SpecialEntry, SymlinkEntry } from '../lib/tree/entry.ts'
import { type ImageContent, type ImageDifference, diffImages } from './diff.ts'
import type { InstalledPackage, PackageManager } from './packages/package.ts'

const SOME = { mode: 0o644, uid: 0, gid: 0, mtime: 1_700_000_000 }

const file = (path: string, more: Partial<FileEntry> = {}): FileEntry => ({
  path,
  type: 'file',
  ...SOME,
  size: 100,
  sha256: 'aa',
  ...more,
})
const directory = (path: string, more: Partial<DirectoryEntry> = {}): DirectoryEntry => ({
  path,
  type: 'directory',
  ...SOME,
  mode: 0o755,
  ...more,
})
const link = (path: string, target: string, more: Partial<SymlinkEntry> = {}): SymlinkEntry => ({
  path,
  type: 'symlink',
  ...SOME,
  target,
  ...more,
})
const device = (path: string, major: number, minor: number): SpecialEntry => ({
  path,
  type: 'char',
  ...SOME,
  major,
  minor,
})

const image = (packages: readonly InstalledPackage[], entries: readonly Entry[] = []): ImageContent => ({
  packages,
  entries,
})

const pack =
  (manager: PackageManager) =>
  (text: string): InstalledPackage => {
    const [name = '', version = '', arch = 'amd64'] = text.split(' ')
    return { name, version, arch, manager, size: 1 }
  }

/** + came, - went, ^ newer, v older. */
const told = ({ packages }: ImageDifference): string[] => [
  ...packages.added.map(({ name, version, arch }) => `+ ${name} ${version} ${arch}`),
  ...packages.removed.map(({ name, version, arch }) => `- ${name} ${version} ${arch}`),
  ...packages.upgraded.map(({ before, after }) => `^ ${after.name} ${before.version} → ${after.version}`),
  ...packages.downgraded.map(({ before, after }) => `v ${after.name} ${before.version} → ${after.version}`),
]

const between = (before: Entry[], after: Entry[]): string[] => {
  const { files } = diffImages(image([], before), image([], after))
  return [
    ...files.added.map(({ path }) => `+ ${path}`),
    ...files.removed.map(({ path }) => `- ${path}`),
    ...files.changed.map(({ path, what }) => `~ ${path} ${what.join(',')}`),
  ]
}

const sized = (path: string, size: number, linkTo?: string): FileEntry =>
  file(path, { size, ...(linkTo !== undefined && { linkTo }) })

describe('packages', () => {
  test.each<[what: string, manager: PackageManager, before: string[], after: string[], expected: string[]]>([
    ['nothing', 'dpkg', ['a 1'], ['a 1'], []],
    ['came and went', 'dpkg', ['a 1', 'b 1'], ['b 1', 'c 1'], ['+ c 1 amd64', '- a 1 amd64']],
    ['newer and older', 'dpkg', ['a 1.9', 'b 2'], ['a 1.10', 'b 2~rc1'], ['^ a 1.9 → 1.10', 'v b 2 → 2~rc1']],
    ['a caret is newer to rpm', 'rpm', ['a 1-1'], ['a 1^git1-1'], ['^ a 1-1 → 1^git1-1']],
    ['an epoch', 'rpm', ['a 1:1-1'], ['a 9-1'], ['v a 1:1-1 → 9-1']],
    ['a suffix is older to apk', 'apk', ['a 1.0-r0'], ['a 1.0_rc1-r0'], ['v a 1.0-r0 → 1.0_rc1-r0']],
    ['the same written otherwise', 'dpkg', ['a 1.0'], ['a 1.00'], ['+ a 1.00 amd64', '- a 1.0 amd64']],
    [
      'kernels of Debian',
      'dpkg',
      ['linux-image-6.1.0-18-amd64 6.1.76-1', 'linux-image-amd64 6.1.76-1'],
      ['linux-image-6.1.0-21-amd64 6.1.90-1', 'linux-image-amd64 6.1.90-1'],
      [
        '+ linux-image-6.1.0-21-amd64 6.1.90-1 amd64',
        '- linux-image-6.1.0-18-amd64 6.1.76-1 amd64',
        '^ linux-image-amd64 6.1.76-1 → 6.1.90-1',
      ],
    ],
    [
      'kernels side by side',
      'rpm',
      ['kernel 5.14.0-70 x86_64', 'kernel 5.14.0-162 x86_64'],
      ['kernel 5.14.0-162 x86_64', 'kernel 5.14.0-284 x86_64'],
      ['+ kernel 5.14.0-284 x86_64', '- kernel 5.14.0-70 x86_64'],
    ],
    ['one more kernel', 'rpm', ['kernel 1-1'], ['kernel 1-1', 'kernel 2-1'], ['+ kernel 2-1 amd64']],
    [
      'another kernel instead of two',
      'rpm',
      ['kernel 1-1', 'kernel 2-1'],
      ['kernel 3-1'],
      ['+ kernel 3-1 amd64', '- kernel 1-1 amd64', '- kernel 2-1 amd64'],
    ],
    [
      'one architecture of two',
      'dpkg',
      ['libc6 1 amd64', 'libc6 1 i386'],
      ['libc6 2 amd64', 'libc6 1 i386'],
      ['^ libc6 1 → 2'],
    ],
    ['another architecture as well', 'dpkg', ['a 1 amd64'], ['a 1 amd64', 'a 1 i386'], ['+ a 1 i386']],
    ['from all to one', 'dpkg', ['a 1 all'], ['a 2 amd64'], ['^ a 1 → 2']],
    ['from all to one, same version', 'dpkg', ['a 1 all'], ['a 1 amd64'], ['+ a 1 amd64', '- a 1 all']],
    [
      'from two to another one',
      'dpkg',
      ['a 1 amd64', 'a 1 i386'],
      ['a 2 amd64', 'a 2 arm64'],
      ['+ a 2 arm64', '- a 1 i386', '^ a 1 → 2'],
    ],
  ])('%s', (_, manager, before, after, expected) => {
    const of = pack(manager)
    expect(told(diffImages(image(before.map(of)), image(after.map(of))))).toEqual(expected)
  })

  test('the same name of another manager is another package', () => {
    const before = image([pack('dpkg')('bash 5.2')])
    const after = image([pack('rpm')('bash 5.3')])
    expect(told(diffImages(before, after))).toEqual(['+ bash 5.3 amd64', '- bash 5.2 amd64'])
  })

  const anyPackage = fc
    .tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', '3~x'), fc.constantFrom('all', 'amd64'))
    .map(parts => pack('dpkg')(parts.join(' ')))
  const anyList = fc.uniqueArray(anyPackage, { selector: one => JSON.stringify(one), maxLength: 10 })

  test('whatever comes and goes, applied to the one it gives the other', () => {
    fc.assert(
      fc.property(anyList, anyList, (before, after) => {
        const { packages } = diffImages(image(before), image(after))
        const changes = [...packages.upgraded, ...packages.downgraded]
        const gone = new Set([...packages.removed, ...changes.map(change => change.before)])
        const result = [
          ...before.filter(one => !gone.has(one)),
          ...packages.added,
          ...changes.map(change => change.after),
        ]
        expect(new Set(result)).toEqual(new Set(after))
        expect(result).toHaveLength(after.length)
      }),
    )
  })
})

describe('files', () => {
  test.each<[what: string, before: Entry[], after: Entry[], expected: string[]]>([
    ['nothing', [file('a')], [file('a')], []],
    ['its time', [file('a')], [file('a', { mtime: 1 })], []],
    ['came and went', [directory('x'), file('x/a')], [directory('x'), file('x/b')], ['+ x/b', '- x/a']],
    ['a directory went', [directory('x'), file('x/a')], [], ['- x', '- x/a']],
    ['content', [file('a')], [file('a', { sha256: 'bb', size: 7 })], ['~ a content']],
    ['mode', [file('a')], [file('a', { mode: 0o4755 })], ['~ a mode']],
    ['owner', [file('a')], [file('a', { uid: 7 })], ['~ a owner']],
    ['group', [directory('a')], [directory('a', { gid: 7 })], ['~ a owner']],
    ['target', [link('a', 'b')], [link('a', 'c')], ['~ a target']],
    ['the mode of a link', [link('a', 'b')], [link('a', 'b', { mode: 0o777 })], []],
    ['device', [device('dev/null', 1, 3)], [device('dev/null', 1, 5)], ['~ dev/null target']],
    ['type', [file('a')], [link('a', 'b', { uid: 9 })], ['~ a type']],
    ['a capability', [file('a')], [file('a', { xattrs: { 'security.capability': 'AQ==' } })], ['~ a xattrs']],
    ['no xattrs, none', [file('a')], [file('a', { xattrs: {} })], []],
    [
      'xattrs in another order',
      [file('a', { xattrs: { 'user.a': '', 'user.b': 'x' } })],
      [file('a', { xattrs: { 'user.b': 'x', 'user.a': '' } })],
      [],
    ],
    ['a copy became a hard link', [file('a'), file('b')], [file('a'), file('b', { linkTo: 'a' })], []],
    [
      'several at once',
      [file('a')],
      [file('a', { sha256: 'bb', mode: 0, uid: 1, xattrs: { 'user.x': '' } })],
      ['~ a content,mode,owner,xattrs'],
    ],
    ['the root itself', [directory('')], [directory('', { mode: 0o700 })], ['~  mode']],
  ])('%s', (_, before, after, expected) => {
    expect(between(before, after)).toEqual(expected)
  })

  test('both sides are there to be looked at', () => {
    const [before, after] = [file('a'), file('a', { mode: 0o600 })]
    expect(diffImages(image([], [before]), image([], [after])).files.changed).toEqual([
      { path: 'a', what: ['mode'], before, after },
    ])
  })
})

describe('sizes', () => {
  test('by directory, at most three deep, largest difference first', () => {
    const before = [
      sized('boot/vmlinuz', 8),
      sized('etc/passwd', 10),
      sized('usr/bin/bash', 1000),
      sized('usr/lib/modules/6.1/kernel/fs/xfs.ko', 500),
      sized('usr/lib/modules/6.1/kernel/net/tun.ko', 50),
      sized('usr/share/doc/a/copyright', 3000),
    ]
    const after = [
      sized('etc/passwd', 10),
      sized('etc/slurm/slurm.conf', 5),
      sized('init', 3),
      sized('usr/bin/bash', 1100),
      sized('usr/bin/sh', 1100, 'usr/bin/bash'),
      sized('usr/lib/libc.so', 40),
      sized('usr/lib/modules/6.2/kernel/fs/xfs.ko', 650),
    ]
    expect(diffImages(image([], before), image([], after)).size).toEqual({
      before: 4568,
      after: 1808,
      delta: -2760,
      directories: [
        { path: 'usr/share/doc', before: 3000, after: 0, delta: -3000 },
        { path: 'usr/bin', before: 1000, after: 1100, delta: 100 },
        { path: 'usr/lib/modules', before: 550, after: 650, delta: 100 },
        { path: 'usr/lib', before: 0, after: 40, delta: 40 },
        { path: 'boot', before: 8, after: 0, delta: -8 },
        { path: 'etc/slurm', before: 0, after: 5, delta: 5 },
        { path: '', before: 0, after: 3, delta: 3 },
      ],
    })
    const short = diffImages(image([], before), image([], after), 2).size.directories
    expect(short.map(({ path }) => path)).toEqual(['usr/share/doc', 'usr/bin'])
  })

  test('nothing is counted twice: the directories add up to the total', () => {
    const path = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 6 }).map(parts => parts.join('/'))
    const files = fc.uniqueArray(
      fc.tuple(path, fc.nat(1000)).map(([path, size]) => sized(`${path}/f`, size)),
      { selector: entry => entry.path },
    )
    fc.assert(
      fc.property(files, files, (before, after) => {
        const { size } = diffImages(image([], before), image([], after), Number.POSITIVE_INFINITY)
        expect(size.directories.reduce((sum, { delta }) => sum + delta, 0)).toBe(size.delta)
        expect(size.after).toBe(after.reduce((sum, entry) => sum + entry.size, 0))
      }),
    )
  })
})

test('an image against itself', () => {
  const same = image([{ name: 'a', version: '1', arch: 'all', manager: 'dpkg', size: 1 }], [directory(''), file('a')])
  expect(diffImages(same, structuredClone(same))).toEqual({
    packages: { added: [], removed: [], upgraded: [], downgraded: [] },
    files: { added: [], removed: [], changed: [] },
    size: { before: 100, after: 100, delta: 0, directories: [] },
  })
})
