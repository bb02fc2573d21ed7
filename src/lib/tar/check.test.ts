import * as fc from 'fast-check'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../exec.ts'
import { type ArchiveSummary, checkArchive } from './check.ts'
import type { TarMember } from './member.ts'
import { readTarHeaders } from './read.ts'
import { END, member, pax, record, streamOf } from './testing.ts'

const check = (archive: Buffer): Promise<ArchiveSummary> => checkArchive(readTarHeaders(streamOf(archive)))
const archive = (...parts: readonly Buffer[]): Buffer => Buffer.concat([...parts, END])
const file = (name: string, content = 'new'): Buffer => member({ name }, content)
const directory = (name: string): Buffer => member({ name, flag: '5', mode: 0o755 })
const link = (name: string, target: string): Buffer => member({ name, flag: '2', link: target })
const hardLink = (name: string, target: string): Buffer => member({ name, flag: '1', link: target })
const device = (name: string, flag: '3' | '4' = '3'): Buffer => member({ name, flag })

async function* directories(names: readonly string[]): AsyncGenerator<TarMember> {
  for (const name of names) yield { name, type: 'directory', size: 0, mode: 0, uid: 0, gid: 0, mtime: 0, linkName: '' }
}

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-check-'))
})
afterAll(() => rm(dir, { recursive: true }))

test('counts members, bytes and devices', async () => {
  const root = archive(
    directory('./'),
    directory('./dev/'),
    device('./dev/null'),
    device('./dev/sda', '4'),
    file('./etc/hosts', '127.0.0.1\n'),
    hardLink('./etc/other', './etc/hosts'),
    link('./bin', 'usr/bin'),
    link('./etc/mtab', '../../../proc/self/mounts'),
    link('./etc/localtime', '/usr/share/zoneinfo/UTC'),
    member({ name: './run/pipe', flag: '6' }),
  )
  expect(await check(root)).toEqual({ members: 10, bytes: 10, devices: 2 })
})

describe('refuses', () => {
  test.each<[string, Buffer[], string]>([
    ['.. at the beginning', [file('../x')], '"../x": it leads out of the root'],
    ['.. within', [file('a/../../x')], '"a/../../x": it leads out of the root'],
    ['.. at the end', [directory('a/..')], '"a/..": it leads out of the root'],
    ['.. behind a slash', [file('/../x')], '"/../x": it leads out of the root'],
    ['.. that would stay inside', [file('a/../x')], '"a/../x": it leads out of the root'],
    ['.. in a pax header', [pax(record('path', '../x')), file('x')], '"../x": it leads out of the root'],
    ['a NUL in a name', [pax(record('path', 'a\0b')), file('x')], '"a\\u0000b": it has a NUL in its name'],
    ['a NUL in a target', [pax(record('linkpath', 'a\0b')), link('x', '')], '"x": it has a NUL in its target'],
    ['a file as root', [file('./.')], '"./.": only a directory can be the root'],
    ['a symbolic link as root', [link('/', '/etc')], '"/": only a directory can be the root'],
    [
      'a file below a symbolic link',
      [link('a', '/etc'), file('a/passwd')],
      '"a/passwd": it would be written through the symbolic link "a"',
    ],
    [
      'a file far below a symbolic link, by another spelling',
      [link('./a//b', '/etc'), file('/a/./b/c/d/passwd')],
      '"/a/./b/c/d/passwd": it would be written through the symbolic link "a/b"',
    ],
    [
      'a directory below a symbolic link',
      [link('a', '..'), directory('a/b/')],
      '"a/b/": it would be written through the symbolic link "a"',
    ],
    [
      'a symbolic link below a symbolic link',
      [link('a', '/etc'), link('a/shadow', 'x')],
      '"a/shadow": it would be written through the symbolic link "a"',
    ],
    [
      'a file below a symbolic link that replaces a directory',
      [directory('a/'), file('a/b'), link('a', '/etc'), file('a/passwd')],
      '"a/passwd": it would be written through the symbolic link "a"',
    ],
    [
      'a directory in the place of a symbolic link',
      [link('a', '/etc'), directory('a/')],
      '"a/": an earlier member made it a symbolic link',
    ],
    [
      'a file in the place of a symbolic link',
      [link('a', '/etc/passwd'), file('./a')],
      '"./a": an earlier member made it a symbolic link',
    ],
    [
      'a hard link to what is outside',
      [hardLink('a', '/etc/shadow')],
      '"a": its target "/etc/shadow" is no file that stands earlier in the archive',
    ],
    [
      'a hard link with .. in its target',
      [file('b/shadow'), hardLink('a', 'b/../b/shadow')],
      '"a": its target "b/../b/shadow" leads out of the root',
    ],
    [
      'a hard link through a symbolic link',
      [file('b/shadow'), link('b', '/etc'), hardLink('a', 'b/shadow')],
      '"a": its target is behind the symbolic link "b"',
    ],
    [
      'a hard link to a symbolic link',
      [link('b', '/etc/shadow'), hardLink('a', 'b')],
      '"a": its target "b" is no file that stands earlier in the archive',
    ],
    [
      'a hard link to a file that became a symbolic link',
      [file('b'), link('b', '/etc/shadow'), hardLink('a', 'b')],
      '"a": its target "b" is no file that stands earlier in the archive',
    ],
    [
      'a hard link to a directory',
      [directory('b'), hardLink('a', 'b')],
      '"a": its target "b" is no file that stands earlier in the archive',
    ],
    [
      'a hard link to a device',
      [directory('dev'), device('dev/sda', '4'), hardLink('dev/b', 'dev/sda')],
      '"dev/b": its target "dev/sda" is no file that stands earlier in the archive',
    ],
    [
      'a hard link to a later file',
      [hardLink('a', 'b'), file('b')],
      '"a": its target "b" is no file that stands earlier in the archive',
    ],
    ['a hard link to itself', [file('a'), hardLink('a', './a')], '"a": it is a hard link to itself'],
    ['a device outside dev', [device('tmp/sda', '4')], '"tmp/sda": device nodes are allowed below dev/ only'],
    ['a device beside dev', [device('development')], '"development": device nodes are allowed below dev/ only'],
    ['dev as a device', [device('dev')], '"dev": device nodes are allowed below dev/ only'],
    [
      'a device where dev is a symbolic link',
      [link('dev', 'tmp'), device('dev/sda')],
      '"dev/sda": it would be written through the symbolic link "dev"',
    ],
    [
      'a whiteout of the directory above',
      [file('a/.wh...')],
      '"a/.wh...": it removes the directory it is in, or the one above',
    ],
    [
      'a whiteout of its own directory',
      [file('.wh..')],
      '".wh..": it removes the directory it is in, or the one above',
    ],
    ['an unknown type', [member({ name: 'a', flag: 'M' })], '"a": it is of no type that tools agree about'],
    [
      'control characters without repeating them',
      [file('\u001b[2J\u009b/../x')],
      '"\\u001b[2J\\u009b/../x": it leads out of the root',
    ],
  ])('%s', async (_, parts, message) => {
    await expect(check(archive(...parts))).rejects.toMatchObject({ code: 'ARCHIVE_INVALID', message })
  })

  test('a name that is no Unicode', async () => {
    const members = directories(['a', '\ud800'])
    await expect(checkArchive(members)).rejects.toMatchObject({ code: 'ARCHIVE_INVALID' })
  })

  test('more names than memory should hold', async () => {
    const members = directories(Array<string>(9).fill('x'.repeat(64 * 1024 * 1024)))
    await expect(checkArchive(members)).rejects.toMatchObject({ message: 'the archive has too many members' })
  })
})

describe('accepts', () => {
  test.each<[string, Buffer[]]>([
    ['dots that are part of a name', [file('..a'), file('a..'), file('...'), file('a/..b')]],
    ['the same name again', [file('a'), directory('b'), directory('b'), file('a')]],
    ['a file that becomes a directory', [file('a'), directory('a'), file('a/b')]],
    ['a symbolic link that becomes another', [link('a', 'b'), link('a', '/c')]],
    ['a name that only begins like a symbolic link', [link('a', '/etc'), file('ab/passwd')]],
    ['whiteouts of names', [file('a/.wh.b'), file('a/.wh..wh..opq'), file('.wh..b')]],
    ['a hard link to a hard link', [file('a'), hardLink('b', 'a'), hardLink('c', '/b')]],
    ['a symbolic link after what is behind it', [link('a', 'b'), file('b/c')]],
  ])('%s', async (_, parts) => {
    expect(await check(archive(...parts))).toMatchObject({ members: parts.length, devices: 0 })
  })
})

test('what GNU tar makes of a root', async () => {
  const root = join(dir, 'root')
  await mkdir(join(root, 'usr/bin'), { recursive: true })
  await writeFile(join(root, 'usr/bin/tool'), 'tool')
  await exec('ln', [join(root, 'usr/bin/tool'), join(root, 'usr/bin/zool')])
  await symlink('/usr/bin', join(root, 'bin'))
  for (const format of ['gnu', 'pax', 'ustar', 'v7']) {
    const { stdout } = await exec('tar', ['-C', root, `--format=${format}`, '--sort=name', '-cf', '-', '.'])
    expect(await check(stdout)).toEqual({ members: 6, bytes: 4, devices: 0 })
  }
})

describe('a careless tar', () => {
  let runs = 0

  /** Extracts as carelessly as GNU tar can be told to, and says what is left of a file beside the root. */
  async function extract(bytes: Buffer): Promise<string> {
    const sandbox = join(dir, `sandbox${runs++}`)
    await mkdir(join(sandbox, 'root'), { recursive: true })
    await mkdir(join(sandbox, 'outside'))
    await writeFile(join(sandbox, 'outside/a'), 'old')
    const careless = ['-P', '--keep-directory-symlink', '--overwrite']
    await exec('tar', ['-C', join(sandbox, 'root'), ...careless, '-xf', '-'], { input: bytes, allow: [2] })
    const listing = await exec('find', ['.', '-printf', '%P %y %m %n\n'], { cwd: join(sandbox, 'outside') })
    return `${listing.stdout.toString()}${await readFile(join(sandbox, 'outside/a'), 'utf8').catch(() => 'gone')}`
  }

  const UNTOUCHED = ' d 755 2\na f 644 1\nold'

  test.each<[string, Buffer[], string]>([
    ['..', [file('../outside/a')], ' d 755 2\na f 644 1\nnew'],
    ['a symbolic link', [link('l', '../outside'), file('l/a')], ' d 755 2\na f 644 1\nnew'],
    ['a hard link', [hardLink('l', '../outside/a')], ' d 755 2\na f 644 2\nold'],
  ])('falls for %s, which is refused', async (_, parts, outside) => {
    expect(await extract(archive(...parts))).toBe(outside)
    await expect(check(archive(...parts))).rejects.toMatchObject({ code: 'ARCHIVE_INVALID' })
  })

  test('touches nothing outside with an archive that is accepted', async () => {
    const name = fc.constantFrom('a', 'b', './a', '/b', 'a/', 'a/a', 'a/b', 'b//a', 'a/./b', 'a/a/a', '../outside/a')
    const target = fc.constantFrom('../outside', '../outside', '../outside/a', '../../outside', '..', 'a', 'b', '.')
    const part = fc.oneof(
      name.map(file),
      name.map(path => member({ name: path, flag: '5', mode: 0o777 })),
      fc.tuple(name, target).map(([path, to]) => link(path, to)),
      fc.tuple(name, fc.oneof(name, target)).map(([path, to]) => hardLink(path, to)),
    )
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 2, maxLength: 4 }), async parts => {
        const isAccepted = await check(archive(...parts)).then(
          () => true,
          () => false,
        )
        if (!isAccepted) return
        accepted += 1
        expect(await extract(archive(...parts))).toBe(UNTOUCHED)
      }),
      { numRuns: 1000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })
})
