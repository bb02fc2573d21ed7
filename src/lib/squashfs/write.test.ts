import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../exec.ts'
import { entriesIn, noise, openFilesIn, treeOf, words, type Item } from '../pack/testing.ts'
import type { FileTree } from '../tree/entry.ts'
import { writeSquashfs } from './write.ts'

let dir: string
let contents: string
let images = 0
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-squashfs-'))
  contents = join(dir, 'contents')
})
afterAll(() => rm(dir, { recursive: true }))

const newFile = (): string => join(dir, `image-${++images}`)
const tree = (...items: readonly Item[]): FileTree => treeOf(items, contents)
const write = (tree: FileTree, options: Partial<Parameters<typeof writeSquashfs>[2]> = {}) =>
  writeSquashfs(tree, newFile(), { time: 1_700_000_000, ...options })

const BLOCK = 128 * 1024
const longName = (n: number): string => `file-with-a-rather-long-name-${String(n).padStart(5, '0')}`
const CAPABILITY = 'AQAAAgAgAAAAAAAAAAAAAAAAAAA='

const zoo = (): FileTree =>
  tree(
    { path: '', type: 'directory', mode: 0o755, mtime: 1_600_000_000 },
    { path: 'bin', type: 'symlink', target: 'usr/bin', mtime: 5 },
    { path: 'dev', type: 'directory', mode: 0o1777 },
    { path: 'dev/disk', type: 'block', major: 259, minor: 70_000, gid: 6, mode: 0o660 },
    { path: 'dev/null', type: 'char', major: 1, minor: 3, mode: 0o666 },
    { path: 'dev/pipe', type: 'fifo', mode: 0o600 },
    { path: 'dev/log', type: 'socket', mode: 0o666 },
    { path: 'empty', type: 'file', content: '' },
    { path: 'lone', type: 'directory', mode: 0o700, uid: 70_000, gid: 4_000_000_000 },
    { path: 'lone/one', type: 'file', content: 'one' },
    { path: 'usr', type: 'directory', xattrs: { 'user.note': 'aGVsbG8=' } },
    { path: 'usr/bin', type: 'directory' },
    { path: 'usr/bin/again', type: 'file', content: 'a file with three names', mode: 0o755, linkTo: 'linked' },
    { path: 'linked', type: 'file', content: 'a file with three names', mode: 0o755 },
    { path: 'usr/bin/once more', type: 'file', content: 'a file with three names', mode: 0o755, linkTo: 'linked' },
    {
      path: 'usr/bin/ping',
      type: 'file',
      content: words(40_000, 1),
      mode: 0o4755,
      xattrs: { 'security.capability': CAPABILITY },
    },
    {
      path: 'usr/bin/trusted',
      type: 'file',
      content: words(300_000, 2),
      xattrs: { 'trusted.x': 'AAE=', 'user.y': '' },
    },
    { path: 'usr/old', type: 'file', content: 'old', mtime: 0 },
    { path: 'usr/new', type: 'file', content: 'new', mtime: 4_000_000_000 },
  )

/** What unsquashfs unpacks. */
async function unpacked(file: string): Promise<Awaited<ReturnType<typeof entriesIn>>> {
  const to = `${file}-unpacked`
  await exec('unsquashfs', ['-no-progress', '-quiet', '-strict-errors', '-d', to, file])
  return entriesIn(to)
}

/** What the kernel shows, copied. */
async function mounted(file: string): Promise<Awaited<ReturnType<typeof entriesIn>>> {
  const [at, to] = [`${file}-mounted`, `${file}-copied`]
  await mkdir(at)
  const script = 'mount -t squashfs -o ro,loop "$1" "$2" && cp -a "$2" "$3"'
  await exec('unshare', ['--mount', 'sh', '-c', script, 'sh', file, at, to])
  return entriesIn(to)
}

describe.each([
  ['unsquashfs', unpacked],
  ['the kernel', mounted],
])('as %s reads it', (_, read) => {
  test('every kind of file with all its attributes', async () => {
    const given = zoo()
    const { file } = await write(given)
    expect(await read(file)).toEqual(given.entries)
  })

  test('nothing but a root', async () => {
    const given = tree({ path: '', type: 'directory', mode: 0o711, uid: 3 })
    const { file } = await write(given)
    expect(await read(file)).toEqual(given.entries)
  })

  test('files around the size of a block', async () => {
    const sizes = [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 5 * BLOCK + 77]
    const given = tree(
      ...sizes.flatMap((size, seed) => [
        { path: `words-${size}`, type: 'file' as const, content: words(size, seed) },
        { path: `noise-${size}`, type: 'file' as const, content: noise(size, seed) },
        { path: `zeros-${size}`, type: 'file' as const, content: Buffer.alloc(size) },
        {
          path: `holes-${size}`,
          type: 'file' as const,
          content: Buffer.concat([Buffer.alloc(size), words(3 * BLOCK, seed), Buffer.alloc(size)]),
        },
      ]),
    )
    const { file } = await write(given)
    expect(await read(file)).toEqual(given.entries)
  })

  test('unusual names', async () => {
    const names = [
      'with space',
      'line\nbreak',
      'Zürich',
      '日本',
      '😀',
      '\uFFFD',
      '-dash',
      '.hidden',
      'x'.repeat(255),
      'é'.repeat(127),
      '"\'\\',
    ]
    const given = tree(...names.map(path => ({ path, type: 'file' as const, content: path })), {
      path: 'to',
      type: 'symlink',
      target: 'line\nbreak 😀',
    })
    const { file } = await write(given)
    expect(await read(file)).toEqual(given.entries)
  })

  test('names of one file far away from each other', async () => {
    const given = tree(
      { path: 'many', type: 'directory' },
      ...Array.from({ length: 700 }, (_, n) => ({
        path: `many/${longName(n)}`,
        type: 'file' as const,
        content: `${n % 9}`,
      })),
      { path: 'many/dir', type: 'directory', xattrs: { 'user.a': 'YQ==' } },
      { path: 'zlink', type: 'file', content: '5', linkTo: `many/${longName(5)}` },
    )
    const { file } = await write(given)
    expect(await read(file)).toEqual(given.entries)
  })
})

describe('a directory with 10,000 names', () => {
  let names: string[]
  let file: string
  beforeAll(async () => {
    const given = tree(
      { path: 'many', type: 'directory' },
      ...Array.from({ length: 10_000 }, (_, n) => ({
        path: `many/${n}-${'x'.repeat(n % 100)}`,
        type: 'file' as const,
        content: '',
      })),
    )
    names = given.entries.filter(({ type }) => type === 'file').map(({ path }) => path)
    file = (await write(given)).file
  })

  test('is listed by unsquashfs', async () => {
    const { stdout } = await exec('unsquashfs', ['-d', '', '-l', file])
    expect(stdout.toString().trimEnd().split('\n').slice(2)).toEqual(names.map(name => `/${name}`))
  })

  test('is listed by the kernel, which finds every name of it and no other', async () => {
    const at = `${file}-mounted`
    await mkdir(at)
    const script =
      'mount -t squashfs -o ro,loop "$1" "$2" && cd "$2" && ls -U many && xargs -0 stat -c %n && ! stat many/5000'
    const input = names.join('\0')
    const { stdout } = await exec('unshare', ['--mount', 'sh', '-c', script, 'sh', file, at], { input })
    expect(stdout.toString().trimEnd().split('\n')).toEqual([
      ...names.map(name => name.slice('many/'.length)),
      ...names,
    ])
  })
})

test('lists as unsquashfs has it', async () => {
  const { file } = await write(zoo())
  const { stdout } = await exec('unsquashfs', ['-lln', file], { env: { TZ: 'UTC' } })
  expect(stdout.toString().split('\n')).toEqual([
    'drwxr-xr-x 0/0                      87 2020-09-13 12:26 squashfs-root',
    'lrwxrwxrwx 0/0                       7 1970-01-01 00:00 squashfs-root/bin -> usr/bin',
    'drwxrwxrwt 0/0                      62 2023-11-14 22:13 squashfs-root/dev',
    // Its way to show 259:70000, also of what mksquashfs wrote; it unpacks the right one.
    'brw-rw---- 0/6                 1118467,112 2023-11-14 22:13 squashfs-root/dev/disk',
    'srw-rw-rw- 0/0                       0 2023-11-14 22:13 squashfs-root/dev/log',
    'crw-rw-rw- 0/0                   1,  3 2023-11-14 22:13 squashfs-root/dev/null',
    'prw------- 0/0                       0 2023-11-14 22:13 squashfs-root/dev/pipe',
    '-rw-r--r-- 0/0                       0 2023-11-14 22:13 squashfs-root/empty',
    '-rwxr-xr-x 0/0                      23 2023-11-14 22:13 squashfs-root/linked',
    'drwx------ 70000/4000000000         26 2023-11-14 22:13 squashfs-root/lone',
    '-rw-r--r-- 0/0                       3 2023-11-14 22:13 squashfs-root/lone/one',
    'drwxr-xr-x 0/0                      48 2023-11-14 22:13 squashfs-root/usr',
    'drwxr-xr-x 0/0                      72 2023-11-14 22:13 squashfs-root/usr/bin',
    '-rwxr-xr-x 0/0                      23 2023-11-14 22:13 squashfs-root/usr/bin/again',
    '-rwxr-xr-x 0/0                      23 2023-11-14 22:13 squashfs-root/usr/bin/once more',
    '-rwsr-xr-x 0/0                   40000 2023-11-14 22:13 squashfs-root/usr/bin/ping',
    '-rw-r--r-- 0/0                  300000 2023-11-14 22:13 squashfs-root/usr/bin/trusted',
    '-rw-r--r-- 0/0                       3 2096-10-02 07:06 squashfs-root/usr/new',
    '-rw-r--r-- 0/0                       3 1970-01-01 00:00 squashfs-root/usr/old',
    '',
  ])
})

test('says what it is', async () => {
  const { file } = await write(zoo())
  const { stdout } = await exec('unsquashfs', ['-s', file], { env: { TZ: 'UTC' } })
  expect(stdout.toString().split('\n').slice(1)).toEqual([
    'Creation or last append time Tue Nov 14 22:13:20 2023',
    expect.stringMatching(/^Filesystem size /),
    'Compression zstd',
    'Block size 131072',
    'Filesystem is not exportable via NFS',
    'Inodes are compressed',
    'Data is compressed',
    'Uids/Gids (Id table) are compressed',
    'Fragments are compressed',
    'Always-use-fragments option is not specified',
    'Xattrs are compressed',
    'Duplicates are removed',
    'Number of fragments 1',
    'Number of inodes 17',
    'Number of ids 4',
    'Number of xattr ids 3',
    '',
  ])
})

describe('the same content', () => {
  test('is stored once', async () => {
    const once = tree(
      { path: 'a', type: 'file', content: noise(400_000, 1) },
      { path: 'b', type: 'file', content: noise(9000, 2) },
    )
    const twice = tree(
      { path: 'a', type: 'file', content: noise(400_000, 1) },
      { path: 'b', type: 'file', content: noise(9000, 2) },
      { path: 'c', type: 'file', content: noise(400_000, 1), mode: 0o600 },
      { path: 'd', type: 'file', content: noise(9000, 2), uid: 1 },
    )
    const [first, second] = [await write(once), await write(twice)]
    expect(second.size).toBe(first.size)
    expect(await unpacked(second.file)).toEqual(twice.entries)
  })

  test('comes out with the same bytes', async () => {
    const [first, second] = [await write(zoo()), await write(zoo())]
    expect((await readFile(second.file)).equals(await readFile(first.file))).toBe(true)
    expect(second).toEqual({ ...first, file: second.file })
  })
})

test('says how large the file is and what its digest is', async () => {
  const { file, size, sha256 } = await write(zoo())
  expect(size % 4096).toBe(0)
  expect((await stat(file)).size).toBe(size)
  expect((await exec('sha256sum', [file])).stdout.toString()).toBe(`${sha256}  ${file}\n`)
})

test('attributes the format does not know are left out', async () => {
  const acl = { 'system.posix_acl_access': 'AgAAAA==' }
  const { file } = await write(
    tree(
      { path: 'a', type: 'file', content: 'a', xattrs: { ...acl, 'user.a': 'YQ==' } },
      { path: 'b', type: 'file', content: 'b', xattrs: acl },
    ),
  )
  const [, a, b] = await unpacked(file)
  expect(a?.xattrs).toEqual({ 'user.a': 'YQ==' })
  expect(b?.xattrs).toBeUndefined()
})

describe('does not go on', () => {
  test('when a file has become longer', async () => {
    const given = tree({ path: 'etc', type: 'directory' }, { path: 'etc/motd', type: 'file', content: 'grows' })
    const path = newFile()
    await writeFile(path, 'grows!')
    await expect(write({ ...given, locate: () => path })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'etc/motd changed while it was packed',
    })
  })

  test.each([3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])('when a file is only %i bytes long', async length => {
    const given = tree({ path: 'a', type: 'file', content: words(2 * BLOCK + 1, 3) })
    const path = newFile()
    await writeFile(path, words(length, 3))
    await expect(write({ ...given, locate: () => path })).rejects.toThrow('a changed while it was packed')
  })

  test('when a file is gone', async () => {
    const given = tree({ path: 'a', type: 'file', content: 'x' })
    await expect(write({ ...given, locate: () => join(dir, 'nowhere') })).rejects.toThrow(
      'a changed while it was packed',
    )
  })

  test('when the image is there already', async () => {
    const { file } = await write(tree())
    await expect(writeSquashfs(tree(), file, { time: 0 })).rejects.toMatchObject({ code: 'EEXIST' })
  })

  test('when it is called off before', async () => {
    const file = newFile()
    await expect(writeSquashfs(tree(), file, { time: 0, signal: AbortSignal.abort() })).rejects.toThrow(/aborted/)
    await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('when it is called off on the way', async () => {
    const given = tree(
      ...Array.from({ length: 40 }, (_, n) => ({ path: `f${n}`, type: 'file' as const, content: noise(BLOCK * 8, n) })),
    )
    const controller = new AbortController()
    let located = 0
    const locate = (file: Parameters<FileTree['locate']>[0]): string => {
      if (++located === 10) controller.abort(new Error('called off'))
      return given.locate(file)
    }
    await expect(write({ ...given, locate }, { signal: controller.signal })).rejects.toThrow('called off')
    expect(located).toBeLessThan(40)
    expect(openFilesIn(dir)).toEqual([])
  })
})
