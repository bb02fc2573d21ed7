import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../exec.ts'
import type { Packed } from '../pack/packed.ts'
import { entriesIn, openFilesIn, treeOf, words, type Item } from '../pack/testing.ts'
import type { Entry, FileEntry, FileTree } from '../tree/entry.ts'
import { writeCpio, type CpioOptions } from './write.ts'

let dir: string
let archives = 0
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-cpio-'))
})
afterAll(() => rm(dir, { recursive: true }))

const newFile = (): string => join(dir, `archive-${++archives}`)
const tree = (...items: readonly Item[]): FileTree => treeOf(items, join(dir, 'contents'))
const write = (tree: FileTree, options: Partial<CpioOptions> = {}): Promise<Packed> =>
  writeCpio(tree, newFile(), { compression: 'zstd', ...options })

const MIB = 1024 * 1024
const INIT: Item = { path: 'init', type: 'symlink', target: 'sbin/init', mtime: 0 }

/** The segments, uncompressed. */
async function segmentsOf({ file, index }: Packed, tool: 'zstd' | 'gzip' = 'zstd'): Promise<Buffer[]> {
  if (index.format !== 'cpio') return []
  const bytes = await readFile(file)
  const segments: Buffer[] = []
  for (const [, offset, length] of index.segments) {
    const input = bytes.subarray(offset, offset + length)
    segments.push((await exec(tool, ['-dc'], { input })).stdout)
  }
  return segments
}

/**
 * GNU cpio gives symbolic links the time of now, and so it gets the directories it goes on to fill. The kernel sets all
 * these at the end.
 */
const comparable = (entries: readonly Entry[]): Entry[] =>
  entries.map(entry => (entry.type === 'symlink' || entry.type === 'directory' ? { ...entry, mtime: 0 } : entry))

/** What cpio makes of the segments, one after another. */
async function unpacked(packed: Packed, tool: 'zstd' | 'gzip' = 'zstd'): Promise<Entry[]> {
  const to = `${packed.file}-unpacked`
  await mkdir(to)
  for (const input of await segmentsOf(packed, tool))
    await exec('cpio', ['--extract', '--preserve-modification-time', '--unconditional', '--quiet'], { cwd: to, input })
  return comparable(await entriesIn(to))
}

const list = async (input: Buffer): Promise<string[]> =>
  (await exec('cpio', ['--list', '--quiet'], { input })).stdout.toString().trimEnd().split('\n')

/** The numbers of each name, as they stand in the headers. */
function headersOf(archive: Buffer): { name: string; fields: string[] }[] {
  const headers: { name: string; fields: string[] }[] = []
  for (let at = 0; at < archive.length;) {
    const fields = archive.toString('latin1', at + 6, at + 110).match(/.{8}/g) ?? []
    const [size, name] = [Number.parseInt(fields[6] ?? '', 16), Number.parseInt(fields[11] ?? '', 16)]
    headers.push({ name: archive.toString('utf8', at + 110, at + 110 + name - 1), fields })
    at += Math.ceil((110 + name) / 4) * 4 + Math.ceil(size / 4) * 4
  }
  return headers
}

const zoo = (): FileTree =>
  tree(
    { path: '', type: 'directory', mtime: 1_600_000_000 },
    { path: 'bin', type: 'symlink', target: 'usr/bin' },
    { path: 'dev', type: 'directory', mode: 0o1777 },
    { path: 'dev/disk', type: 'block', major: 259, minor: 70_000, gid: 6, mode: 0o660 },
    { path: 'dev/log', type: 'socket', mode: 0o666 },
    { path: 'dev/null', type: 'char', major: 1, minor: 3, mode: 0o666 },
    { path: 'dev/pipe', type: 'fifo', mode: 0o600 },
    { path: 'empty', type: 'file', content: '' },
    INIT,
    { path: 'linked', type: 'file', content: 'a file with three names', mode: 0o755 },
    { path: 'lone', type: 'directory', mode: 0o700, uid: 70_000, gid: 4_000_000_000 },
    { path: 'lone/one', type: 'file', content: 'one' },
    { path: 'usr', type: 'directory' },
    { path: 'usr/bin', type: 'directory' },
    { path: 'usr/bin/again', type: 'file', content: 'a file with three names', mode: 0o755, linkTo: 'linked' },
    { path: 'usr/bin/once more', type: 'file', content: 'a file with three names', mode: 0o755, linkTo: 'linked' },
    { path: 'usr/bin/ping', type: 'file', content: words(900_000, 1), mode: 0o4755 },
    { path: 'usr/line\nbreak', type: 'file', content: '1' },
    { path: 'usr/old', type: 'file', content: 'old', mtime: 0 },
    { path: 'usr/new', type: 'file', content: 'new', mtime: 4_000_000_000 },
    { path: 'usr/Zürich 😀', type: 'symlink', target: 'é' },
    { path: `usr/${'x'.repeat(255)}`, type: 'file', content: '12' },
    { path: 'usr/none', type: 'directory' },
  )

test.each(['zstd', 'gzip'] as const)('%s: cpio unpacks every kind of file with its attributes', async compression => {
  const given = zoo()
  expect(await unpacked(await write(given, { compression }), compression)).toEqual(comparable(given.entries))
})

describe('the headers', () => {
  const HEADERS = [
    ['.', '00000001 000041ed 00000000 00000000 00000002 6553f100 00000000'],
    ['d', '00000002 000041ed 00000000 00000000 00000002 6553f100 00000000'],
    ['d/null', '00000003 000021b6 00000000 00000000 00000001 6553f100 00000000'],
    ['init', '00000004 0000a1ff 00000000 00000000 00000001 00000000 00000009'],
    ['a', '00000005 000081a4 00000001 00000002 00000002 6553f100 00000000'],
    ['z', '00000005 000081a4 00000001 00000002 00000002 6553f100 00000005'],
    ['TRAILER!!!', '00000000 00000000 00000000 00000000 00000001 00000000 00000000'],
  ]

  test('are those of the newc format', async () => {
    const packed = await write(
      tree(
        { path: 'a', type: 'file', content: 'twice', uid: 1, gid: 2 },
        { path: 'd', type: 'directory' },
        { path: 'd/null', type: 'char', major: 1, minor: 3, mode: 0o666 },
        { path: 'z', type: 'file', content: 'twice', uid: 1, gid: 2, linkTo: 'a' },
      ),
    )
    const [segment = Buffer.alloc(0), ...more] = await segmentsOf(packed)
    expect(more).toEqual([])
    const headers = headersOf(segment)
    expect(headers.map(({ name, fields }) => [name, fields.slice(0, 7).join(' ')])).toEqual(HEADERS)
    expect(headers[2]?.fields.slice(7).join(' ')).toBe('00000000 00000000 00000001 00000003 00000007 00000000')
    expect(segment.length % 4).toBe(0)
  })
})

describe('init', () => {
  test('is added where it belongs', async () => {
    const given = tree(
      { path: 'ini', type: 'directory' },
      { path: 'ini/z', type: 'file', content: '' },
      { path: 'init.d', type: 'directory' },
      { path: 'sbin', type: 'directory' },
    )
    const [segment = Buffer.alloc(0)] = await segmentsOf(await write(given))
    expect(await list(segment)).toEqual(['.', 'ini', 'ini/z', 'init', 'init.d', 'sbin'])
  })

  test('is added at the end', async () => {
    const [segment = Buffer.alloc(0)] = await segmentsOf(await write(tree({ path: 'bin', type: 'directory' })))
    expect(await list(segment)).toEqual(['.', 'bin', 'init'])
  })

  test('is left alone when there is one', async () => {
    const given = tree({ path: 'init', type: 'file', content: '#!/bin/sh\n', mode: 0o755 })
    expect(await unpacked(await write(given))).toEqual(comparable(given.entries))
  })
})

test('nothing but a root', async () => {
  const [segment = Buffer.alloc(0)] = await segmentsOf(await write(tree({ path: '', type: 'directory', mode: 0o711 })))
  expect(headersOf(segment).map(({ name, fields }) => [name, fields[1]])).toEqual([
    ['.', '000041c9'],
    ['init', '0000a1ff'],
    ['TRAILER!!!', '00000000'],
  ])
})

test('a name that would end the archive does not', async () => {
  const given = tree(
    INIT,
    { path: 'TRAILER!!!', type: 'file', content: 'x' },
    { path: 'z', type: 'file', content: 'z' },
  )
  expect(await unpacked(await write(given))).toEqual(comparable(given.entries))
})

describe('a large tree', () => {
  let given: FileTree
  let packed: Packed
  let segments: Buffer[]
  beforeAll(async () => {
    given = tree(
      INIT,
      { path: 'a-first', type: 'file', content: 'all names in one segment' },
      ...Array.from({ length: 40 }, (_, n) => ({
        path: `f${String(n).padStart(2, '0')}`,
        type: 'file' as const,
        content: Buffer.alloc(n === 20 ? 17 * MIB : MIB + n, words(5000, n)),
      })),
      { path: 'm-dir', type: 'directory' },
      { path: 'm-dir/second', type: 'file', content: 'all names in one segment', linkTo: 'a-first' },
      { path: 'zlast', type: 'file', content: 'all names in one segment', linkTo: 'a-first' },
    )
    packed = await write(given)
    segments = await segmentsOf(packed)
  })

  test('comes in segments, which together are the tree', async () => {
    expect(await unpacked(packed)).toEqual(comparable(given.entries))
  })

  test('has segments of 4 to 16 MiB, but for a file that is larger', () => {
    const sizes = segments.map(({ length }) => length)
    expect(sizes.length).toBeGreaterThan(3)
    expect(sizes.filter(size => size > 16 * MIB + 200)).toHaveLength(1)
    expect(sizes.filter(size => size < 4 * MIB).length).toBeLessThanOrEqual(2)
  })

  test('has all names of a file in one segment, where the last of them is', async () => {
    const names = await Promise.all(segments.map(list))
    expect(names.at(-1)?.slice(-3)).toEqual(['a-first', 'm-dir/second', 'zlast'])
    expect(names.flat().filter(name => name === 'a-first')).toHaveLength(1)
  })

  test('can be unpacked by one decompressor', async () => {
    const { stdout } = await exec('zstd', ['-dc', packed.file])
    expect(stdout.equals(Buffer.concat(segments))).toBe(true)
  })
})

test('10,000 names in one directory', async () => {
  const files = Array.from({ length: 10_000 }, (_, n) => ({
    path: `many/${n}`,
    type: 'file' as const,
    content: `${n % 100}`,
  }))
  const given = tree(INIT, { path: 'many', type: 'directory' }, ...files)
  const [segment = Buffer.alloc(0)] = await segmentsOf(await write(given))
  expect(await list(segment)).toEqual(given.entries.map(({ path }) => path || '.'))
})

test.each(['zstd', 'gzip'] as const)('%s: the same tree comes out with the same bytes', async compression => {
  const [first, second] = [await write(zoo(), { compression }), await write(zoo(), { compression })]
  expect((await readFile(second.file)).equals(await readFile(first.file))).toBe(true)
  expect(second).toEqual({ ...first, file: second.file })
})

test('says how large the file is and what its digest is', async () => {
  const { file, size, sha256 } = await write(zoo())
  expect((await stat(file)).size).toBe(size)
  expect((await exec('sha256sum', [file])).stdout.toString()).toBe(`${sha256}  ${file}\n`)
})

describe('does not go on', () => {
  test('with a file of 4 GiB', async () => {
    const given = tree({ path: 'huge', type: 'file', content: '' })
    const entries = given.entries.map(entry => (entry.type === 'file' ? { ...entry, size: 2 ** 32 } : entry))
    await expect(write({ ...given, entries })).rejects.toMatchObject({
      code: 'IMAGE_TOO_LARGE',
      message: 'huge has 4 GiB or more: too large for an initramfs',
    })
  })

  test.each(['', 'x', 'longer'])('when a file is %j and not what it was', async content => {
    const given = tree({ path: 'etc', type: 'directory' }, { path: 'etc/motd', type: 'file', content: 'other' })
    const path = newFile()
    await writeFile(path, content)
    await expect(write({ ...given, locate: () => path })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'etc/motd changed while it was packed',
    })
  })

  test('when a file is gone', async () => {
    const given = tree({ path: 'a', type: 'file', content: 'x' })
    await expect(write({ ...given, locate: () => join(dir, 'nowhere') })).rejects.toThrow(
      'a changed while it was packed',
    )
  })

  test('when the archive is there already', async () => {
    const { file } = await write(tree())
    await expect(writeCpio(tree(), file, { compression: 'zstd' })).rejects.toMatchObject({ code: 'EEXIST' })
  })

  test('when it is called off before', async () => {
    const file = newFile()
    const signal = AbortSignal.abort()
    await expect(writeCpio(tree(), file, { compression: 'zstd', signal })).rejects.toThrow(/aborted/)
    await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('when it is called off on the way', async () => {
    const given = tree(
      ...Array.from({ length: 60 }, (_, n) => ({
        path: `f${n}`,
        type: 'file' as const,
        content: Buffer.alloc(2 * MIB, words(5000, n)),
      })),
    )
    const controller = new AbortController()
    let located = 0
    const locate = (file: FileEntry): string => {
      if (++located === 10) controller.abort(new Error('called off'))
      return given.locate(file)
    }
    await expect(write({ ...given, locate }, { signal: controller.signal })).rejects.toThrow('called off')
    expect(located).toBeLessThan(60)
    expect(openFilesIn(dir)).toEqual([])
  })
})
