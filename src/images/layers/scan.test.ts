import { createHash } from 'node:crypto'
import { chmod, chown, link, lstat, lutimes, mkdir, rename, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import type { Entry } from '../../lib/tree/entry.ts'
import { directoryOf, failureOf, temporaryDir, writeFiles } from '../../site/testing.ts'
import { scanLayer } from './scan.ts'

const TIME = 1_700_000_000
const shaOf = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')
const pathsOf = (entries: readonly Entry[]): string[] => entries.map(entry => entry.path)

test('everything an image keeps', async () => {
  const root = await directoryOf({ 'etc/motd': 'welcome\n', 'etc/empty': '' })
  await symlink('../etc/motd', join(root, 'link'))
  await chmod(root, 0o755)
  await chmod(join(root, 'etc'), 0o2750)
  await chown(join(root, 'etc'), 12, 34)
  await chmod(join(root, 'etc/motd'), 0o4711)
  await chown(join(root, 'etc/motd'), 1000, 900)
  await chmod(join(root, 'etc/motd'), 0o4711)
  for (const [path, time] of [
    ['etc/motd', 1000.9],
    ['etc/empty', 0],
    ['etc', 2000],
    ['', 3000],
  ] as const)
    await utimes(join(root, path), time, time)
  await lutimes(join(root, 'link'), 4000, 4000)
  expect(await scanLayer(root, TIME)).toEqual({
    entries: [
      { path: '', type: 'directory', mode: 0o755, uid: 0, gid: 0, mtime: 3000 },
      { path: 'etc', type: 'directory', mode: 0o2750, uid: 12, gid: 34, mtime: 2000 },
      { path: 'etc/empty', type: 'file', mode: 0o644, uid: 0, gid: 0, mtime: 0, size: 0, sha256: shaOf('') },
      {
        path: 'etc/motd',
        type: 'file',
        mode: 0o4711,
        uid: 1000,
        gid: 900,
        mtime: 1000,
        size: 8,
        sha256: shaOf('welcome\n'),
      },
      { path: 'link', type: 'symlink', mode: 0o777, uid: 0, gid: 0, mtime: 4000, target: '../etc/motd' },
    ],
    gone: [],
    opaque: [],
  })
})

test('an empty directory is its root', async () => {
  expect(pathsOf((await scanLayer(await temporaryDir(), TIME)).entries)).toEqual([''])
})

test('in the order of a tree: what is in a directory follows it at once, names in byte order', async () => {
  const root = await directoryOf({
    'a/b': '',
    'a.b': '',
    'a-b/c': '',
    B: '',
    é: '',
    '\u{1F600}': '',
    '\uFFFD': '',
    z: '',
  })
  expect(pathsOf((await scanLayer(root, TIME)).entries)).toEqual([
    '',
    'B',
    'a',
    'a/b',
    'a-b',
    'a-b/c',
    'a.b',
    'z',
    'é',
    '\uFFFD',
    '\u{1F600}',
  ])
})

test('a file of many reads has the digest of all of it', async () => {
  const content = Buffer.alloc(3_000_001, 'abc')
  const root = await directoryOf({ large: content })
  expect((await scanLayer(root, TIME)).entries[1]).toMatchObject({ size: 3_000_001, sha256: shaOf(content) })
})

describe('times', () => {
  test('nothing is newer than the build, in the list and on disk', async () => {
    const root = await directoryOf({ new: '', old: '', 'dir/now': '' })
    await symlink('nowhere', join(root, 'link'))
    await utimes(join(root, 'old'), 1000, 1000)
    await utimes(join(root, 'new'), TIME + 1, TIME + 1)
    const { entries } = await scanLayer(root, TIME)
    expect(entries.map(({ path, mtime }) => [path, mtime])).toEqual([
      ['', TIME],
      ['dir', TIME],
      ['dir/now', TIME],
      ['link', TIME],
      ['new', TIME],
      ['old', 1000],
    ])
    for (const { path, mtime } of entries) expect((await lstat(join(root, path))).mtimeMs).toBe(mtime * 1000)
    expect((await scanLayer(root, TIME)).entries).toEqual(entries)
  })

  test('not even by a part of a second', async () => {
    const root = await directoryOf({ a: '' })
    await utimes(join(root, 'a'), TIME + 0.5, TIME + 0.5)
    expect((await scanLayer(root, TIME)).entries[1]?.mtime).toBe(TIME)
    expect((await stat(join(root, 'a'))).mtimeMs).toBe(TIME * 1000)
  })

  test('before 1970 it is 1970', async () => {
    const root = await directoryOf({ a: '' })
    await exec('touch', ['--date=1960-01-01 00:00:00Z', join(root, 'a')])
    expect((await scanLayer(root, TIME)).entries[1]?.mtime).toBe(0)
  })
})

describe('several names of one file', () => {
  test('the first in the order of the tree is the file, the others link to it', async () => {
    const root = await directoryOf({ 'm/file': 'x', other: 'x' })
    for (const name of ['z', 'b', 'm/second']) await link(join(root, 'm/file'), join(root, name))
    const { entries } = await scanLayer(root, TIME)
    expect(entries.flatMap(entry => (entry.type === 'file' ? [[entry.path, entry.linkTo]] : []))).toEqual([
      ['b', undefined],
      ['m/file', 'b'],
      ['m/second', 'b'],
      ['other', undefined],
      ['z', 'b'],
    ])
    expect(entries.every(entry => entry.type !== 'file' || entry.sha256 === shaOf('x'))).toBe(true)
  })

  test('whichever name the disk tells first', async () => {
    const names = 'zyxwvutsrqponmlkjihgfedcba'.split('')
    const root = await directoryOf({ z: '' })
    for (const name of names.slice(1)) await link(join(root, 'z'), join(root, name))
    const { entries } = await scanLayer(root, TIME)
    expect(entries.map(entry => (entry.type === 'file' ? entry.linkTo : ''))).toEqual([
      '',
      undefined,
      ...names.slice(1).map(() => 'a'),
    ])
  })

  test('a name outside is none of them', async () => {
    const root = await directoryOf({ 'layer/a': 'x', outside: 'y' })
    await link(join(root, 'outside'), join(root, 'layer/b'))
    const { entries } = await scanLayer(join(root, 'layer'), TIME)
    expect(entries.map(entry => (entry.type === 'file' ? entry.linkTo : undefined))).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('two files of two names each do not mix', async () => {
    const root = await directoryOf({ a: '1', b: '2' })
    await link(join(root, 'a'), join(root, 'd'))
    await link(join(root, 'b'), join(root, 'c'))
    expect((await scanLayer(root, TIME)).entries.slice(1)).toMatchObject([
      { path: 'a', sha256: shaOf('1') },
      { path: 'b', sha256: shaOf('2') },
      { path: 'c', sha256: shaOf('2'), linkTo: 'b' },
      { path: 'd', sha256: shaOf('1'), linkTo: 'a' },
    ])
  })
})

const attributes = async (root: string): Promise<(readonly [string, object])[]> =>
  (await scanLayer(root, TIME)).entries.flatMap(entry => (entry.xattrs ? [[entry.path, entry.xattrs] as const] : []))
const set = (file: string, name: string, value: string) => exec('setfattr', ['-h', '-n', name, '-v', value, file])

describe('attributes', () => {
  test('capabilities and users’ own belong to the image', async () => {
    const root = await directoryOf({ ping: '', 'dir/notes': '' })
    await exec('setcap', ['cap_net_raw=ep', join(root, 'ping')])
    await set(join(root, 'dir/notes'), 'user.b', 'two')
    await set(join(root, 'dir/notes'), 'user.a', '0x00ff0a')
    await set(join(root, 'dir'), 'user.dir', 'x')
    await set(root, 'user.root', 'y')
    expect(await attributes(root)).toEqual([
      ['', { 'user.root': 'eQ==' }],
      ['dir', { 'user.dir': 'eA==' }],
      ['dir/notes', { 'user.a': 'AP8K', 'user.b': 'dHdv' }],
      ['ping', { 'security.capability': 'AQAAAgAgAAAAAAAAAAAAAAAAAAA=' }],
    ])
    const notes = (await scanLayer(root, TIME)).entries.find(entry => entry.path === 'dir/notes')
    expect(Object.keys(notes?.xattrs ?? {})).toEqual(['user.a', 'user.b'])
  })

  test('what the machine that builds notes does not', async () => {
    const root = await directoryOf({ a: '' })
    await set(join(root, 'a'), 'trusted.overlay.origin', 'x')
    await set(join(root, 'a'), 'trusted.mine', 'x')
    expect(await attributes(root)).toEqual([])
  })

  test('whatever the names are', async () => {
    const names = [
      '.hidden',
      '..dots',
      '...',
      'a b',
      'new\nline',
      'back\\slash',
      'oct\\101',
      'ünïcode',
      'equals=0s',
      '# file: x',
      '-dash',
      '\u{1F600}',
    ]
    const root = await directoryOf(Object.fromEntries(names.map(name => [`d/${name}`, ''])))
    for (const name of names) await set(join(root, 'd', name), 'user.name', `0x${Buffer.from(name).toString('hex')}`)
    const found = new Map(await attributes(root))
    for (const name of names)
      expect([name, found.get(`d/${name}`)]).toEqual([name, { 'user.name': Buffer.from(name).toString('base64') }])
  })
})

describe('what is neither file, directory nor link', () => {
  test('is kept as it is', async () => {
    const root = await temporaryDir()
    for (const args of [
      ['null', 'c', '1', '3'],
      ['large', 'b', '4000', '1000000'],
      ['zero-major', 'c', '0', '5'],
      ['fifo', 'p'],
    ])
      await exec('mknod', [join(root, args[0] ?? ''), ...args.slice(1)])
    const server = createServer()
    await new Promise<void>(resolve => void server.listen(join(root, 'socket'), resolve))
    // Closing it would remove it under this name.
    await rename(join(root, 'socket'), join(root, 'socket2'))
    await new Promise<void>(resolve => void server.close(() => resolve()))
    const { entries, gone } = await scanLayer(root, TIME)
    expect(
      entries.slice(1).map(entry => ('major' in entry ? [entry.path, entry.type, entry.major, entry.minor] : entry)),
    ).toEqual([
      ['fifo', 'fifo', 0, 0],
      ['large', 'block', 4000, 1_000_000],
      ['null', 'char', 1, 3],
      ['socket2', 'socket', 0, 0],
      ['zero-major', 'char', 0, 5],
    ])
    expect(gone).toEqual([])
  })
})

describe('what a layer takes away', () => {
  test('single paths, and all that a directory held below', async () => {
    const root = await directoryOf({ 'etc/kept': '', 'usr/share/new': '' })
    await exec('mknod', [join(root, 'etc/passwd'), 'c', '0', '0'])
    await mkdir(join(root, 'var'))
    await exec('mknod', [join(root, 'var/cache'), 'c', '0', '0'])
    await exec('setfattr', ['-n', 'trusted.overlay.opaque', '-v', 'y', join(root, 'usr/share')])
    const { entries, gone, opaque } = await scanLayer(root, TIME)
    expect(pathsOf(entries)).toEqual(['', 'etc', 'etc/kept', 'usr', 'usr/share', 'usr/share/new', 'var'])
    expect([...gone].sort()).toEqual(['etc/passwd', 'var/cache'])
    expect(opaque).toEqual(['usr/share'])
    expect(entries.find(entry => entry.path === 'usr/share')?.xattrs).toBeUndefined()
  })

  test('as overlayfs itself notes it', async () => {
    const dir = await temporaryDir()
    for (const name of ['lower', 'upper', 'work', 'root']) await mkdir(join(dir, name))
    await writeFiles(join(dir, 'lower'), { 'd/1': '', 'd/2': '', 'e/1': '', f: '' })
    const script = `cd "$1"; mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work muster root
      cd root; rm f d/1; rm -r e; mkdir e; touch e/new`
    await exec('unshare', ['--mount', '--propagation', 'private', 'sh', '-euc', script, 'sh', dir])
    const { entries, gone, opaque } = await scanLayer(join(dir, 'upper'), TIME)
    expect(pathsOf(entries)).toEqual(['', 'd', 'e', 'e/new'])
    expect([[...gone].sort(), opaque]).toEqual([['d/1', 'f'], ['e']])
  })
})

test('a name that is not UTF-8 is refused: no list could tell it', async () => {
  const root = await directoryOf({ 'opt/a': '' })
  await writeFile(Buffer.concat([Buffer.from(`${root}/opt/`), Buffer.from([0x62, 0xff])]), '')
  expect(await failureOf(() => scanLayer(root, TIME))).toBe('BUILD_FAILED: /opt/b\uFFFD: the name is not UTF-8')
})

test('can be given up', async () => {
  const root = await directoryOf({ a: '' })
  await expect(scanLayer(root, TIME, AbortSignal.abort())).rejects.toThrow(
    expect.objectContaining({ name: 'AbortError' }),
  )
})
