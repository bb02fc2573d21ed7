import * as fc from 'fast-check'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { MusterError } from '../errors.ts'
import { exec } from '../exec.ts'
import type { TarMember } from './member.ts'
import { readTarHeaders } from './read.ts'
import { END, GNU, member, membersOf, pax, type RawHeader, readAll, record, streamOf } from './testing.ts'

const archive = (...parts: readonly Buffer[]): Buffer => Buffer.concat([...parts, END])
const only = async (...parts: readonly Buffer[]): Promise<TarMember | undefined> =>
  (await membersOf(archive(...parts)))[0]

/** Why an archive is refused. */
const refusal = (bytes: Buffer): Promise<unknown> =>
  membersOf(bytes).then(
    members => `accepted: ${JSON.stringify(members)}`,
    (error: MusterError) => (error.code === 'ARCHIVE_INVALID' ? error.message : error),
  )

/** A number as GNU tar writes large ones. */
const binary = (length: number, value: bigint): Buffer =>
  Buffer.from((BigInt.asUintN(length * 8 - 1, value) | (1n << BigInt(length * 8 - 1))).toString(16), 'hex')

const longName = (flag: 'L' | 'K', name: string): Buffer =>
  member({ name: '././@LongLink', flag, magic: GNU }, `${name}\0`)

const globalPax = (...records: readonly Buffer[]): Buffer => member({ flag: 'g' }, Buffer.concat(records))

/** For names of thousands of bytes. */
function paxPath(length: number): Buffer {
  const text = `path=${'n'.repeat(length)}\n`
  return member({ flag: 'x' }, `${text.length + 5} ${text}`)
}

test('a file', async () => {
  const header = { name: 'etc/hosts', mode: 0o100640, uid: 1000, mtime: 1_700_000_000 }
  expect(await membersOf(archive(member(header, 'hello\n')))).toEqual([
    {
      name: 'etc/hosts',
      type: 'file',
      size: 6,
      mode: 0o640,
      uid: 1000,
      gid: 0,
      mtime: 1_700_000_000,
      linkName: '',
    },
  ])
})

test.each([
  ['0', 'file'],
  ['\0', 'file'],
  ['7', 'file'],
  ['1', 'hardlink'],
  ['2', 'symlink'],
  ['3', 'char'],
  ['4', 'block'],
  ['5', 'directory'],
  ['6', 'fifo'],
  ['V', 'other'],
  ['D', 'other'],
  ['X', 'other'],
])('type %j is %s', async (flag, type) => {
  expect((await only(member({ flag, link: 'x' })))?.type).toBe(type)
})

test('in the oldest archives a slash makes a directory', async () => {
  expect(await only(member({ name: 'etc/', flag: '\0', magic: '' }))).toMatchObject({ name: 'etc/', type: 'directory' })
})

test('only links have a target', async () => {
  expect(await only(member({ flag: '2', link: '/etc/hosts' }))).toMatchObject({ linkName: '/etc/hosts' })
  expect(await only(member({ flag: '0', link: '/etc/hosts' }))).toMatchObject({ linkName: '' })
})

test('names up to the last byte of the field, and in two parts', async () => {
  expect((await only(member({ name: 'n'.repeat(100) })))?.name).toBe('n'.repeat(100))
  expect((await only(member({ name: 'b', prefix: 'p'.repeat(155) })))?.name).toBe(`${'p'.repeat(155)}/b`)
})

test('GNU has times in the place of a prefix', async () => {
  expect((await only(member({ name: 'b', prefix: '17000000000', magic: GNU })))?.name).toBe('b')
})

describe('numbers', () => {
  test.each<[string, RawHeader, Partial<TarMember>]>([
    ['filled up with spaces', { uid: '   1750 ' }, { uid: 1000 }],
    ['without an end', { uid: '00001750' }, { uid: 1000 }],
    ['nothing at all', { uid: '\0' }, { uid: 0 }],
    ['binary', { uid: binary(8, 3_000_000n) }, { uid: 3_000_000 }],
    ['binary and negative', { mtime: binary(12, -1n) }, { mtime: -1 }],
  ])('%s', async (_, header, expected) => {
    expect(await only(member({ ...header, magic: GNU }))).toMatchObject(expected)
  })

  test.each<[string, RawHeader, string]>([
    ['not octal', { uid: '0000008\0' }, 'its owner is "0000008\\u0000"'],
    ['with more behind its end', { uid: '17\x0050\0\0\0' }, 'its owner is "17\\u000050\\u0000\\u0000\\u0000"'],
    ['with a sign', { size: '-0000000001\0' }, 'its size is "-0000000001\\u0000"'],
    ['larger than can be counted', { size: binary(12, 1n << 60n) }, 'its size is "\\u0080'],
    ['negative', { size: binary(12, -512n) }, 'its size is negative'],
    ['a negative owner', { uid: binary(8, -2n) }, 'no owner or group can have the number -2'],
    ['the owner that stands for none', { uid: binary(8, 0xffffffffn) }, 'the number 4294967295'],
  ])('refuses one that is %s', async (_, header, message) => {
    expect(await refusal(archive(member(header)))).toContain(message)
  })

  test.each([
    ['GNU', [member({ size: binary(12, 9n << 30n), magic: GNU })]],
    ['pax', [pax(record('size', String(9 * 2 ** 30))), member({})]],
  ])('content of nine gigabytes in %s format is skipped', async (_, before) => {
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield* before
      const chunk = Buffer.alloc(64 * 1024 * 1024, 'x')
      for (let sent = 0; sent < 9 * 2 ** 30; sent += chunk.length) yield chunk
      yield archive(member({ name: 'last' }))
    }
    const members = await readAll(stream())
    expect(members.map(({ name, size }) => [name, size])).toEqual([
      ['file', 9 * 2 ** 30],
      ['last', 0],
    ])
  })
})

describe('GNU', () => {
  test('long names and targets', async () => {
    const [name, link] = ['n'.repeat(4096), 'l'.repeat(300)]
    const both = [longName('K', link), longName('L', name), member({ name: 'n'.repeat(100), flag: '2', magic: GNU })]
    expect(await membersOf(archive(...both, member({ name: 'next' })))).toMatchObject([
      { name, linkName: link },
      { name: 'next', linkName: '' },
    ])
  })

  test.each([
    ['a name of 4097 bytes', archive(longName('L', 'n'.repeat(4097)), member({})), 'announces 4098 bytes'],
    ['two long names for one member', archive(longName('L', 'a'), longName('L', 'b'), member({})), 'one member twice'],
    ['a long name and pax', archive(longName('L', 'a'), pax(record('path', 'b')), member({})), 'one member twice'],
    ['a long name of nothing', archive(longName('L', 'a')), 'ends in the middle of a member'],
    ['sparse files', archive(member({ name: 's', flag: 'S' })), '"s": it is a sparse file'],
    ['a prefix where times belong', archive(member({ prefix: '../x', magic: GNU })), 'one of its times makes no sense'],
  ])('refuses %s', async (_, bytes, message) => {
    expect(await refusal(bytes)).toContain(message)
  })
})

describe('pax', () => {
  test('says it all better, of the next member only', async () => {
    const header = pax(
      record('path', 'ä/b'),
      record('linkpath', 'ö'),
      record('uid', '3000000'),
      record('gid', '4294967294'),
      record('mtime', '1700000000.999999999'),
      record('comment', 'whatever'),
      record('uname', 'somebody'),
      record('SCHILY.xattr.user.a%3Db%25', Buffer.from([0xff, 0x00, 0x0a])),
    )
    expect(await membersOf(archive(header, member({ name: 'cut', flag: '2' }), member({ name: 'next' })))).toEqual([
      {
        name: 'ä/b',
        type: 'symlink',
        size: 0,
        mode: 0o644,
        uid: 3_000_000,
        gid: 4_294_967_294,
        mtime: 1_700_000_000,
        linkName: 'ö',
        xattrs: { 'user.a=b%': '/wAK' },
      },
      { name: 'next', type: 'file', size: 0, mode: 0o644, uid: 0, gid: 0, mtime: 0, linkName: '' },
    ])
  })

  test('the shorter name in the header proper may be cut in the middle of a letter', async () => {
    const cut = Buffer.from('ä'.repeat(60)).subarray(0, 99)
    expect((await only(pax(record('path', 'ä'.repeat(60))), member({ name: cut })))?.name).toBe('ä'.repeat(60))
  })

  test.each([
    ['-1', -1],
    ['-1.5', -2],
    ['-0.5', -1],
    ['-1.0', -1],
    ['0.', 0],
  ])('time %s is %i in whole seconds', async (text, mtime) => {
    expect((await only(pax(record('mtime', text)), member({})))?.mtime).toBe(mtime)
  })

  test('a global header holds for all that follow, until said otherwise', async () => {
    const members = await membersOf(
      archive(
        globalPax(record('comment', '5f1d'), record('uid', '7'), record('mtime', '9')),
        member({ uid: 1 }),
        pax(record('uid', '8')),
        member({ uid: 1 }),
        globalPax(record('uid', '6')),
        member({}),
      ),
    )
    expect(members.map(({ uid, mtime }) => [uid, mtime])).toEqual([
      [7, 9],
      [8, 9],
      [6, 9],
    ])
  })

  test.each(['path', 'linkpath', 'SCHILY.xattr.user.x'])('refuses one %s for all members', async key => {
    expect(await refusal(archive(globalPax(record(key, 'x')), member({})))).toContain('gives all its members one name')
  })

  test.each([
    ['a size for all members', [globalPax(record('size', '0')), member({})], 'gives all its members one'],
    ['two of them for one member', [pax(record('uid', '1')), pax(record('gid', '1')), member({})], 'one member twice'],
    ['a global one in between', [pax(), globalPax(), member({})], 'in the middle of a member'],
    ['a key twice', [pax(record('path', 'a'), record('path', 'b')), member({})], 'says path twice'],
    ['an empty name', [pax(record('path', '')), member({})], 'says path=""'],
    ['a name that is not UTF-8', [pax(record('path', Buffer.from('\xff', 'latin1'))), member({})], 'says path="ÿ"'],
    ['a size in hex', [pax(record('size', '0x10')), member({})], 'says size="0x10"'],
    ['a negative size', [pax(record('size', '-1')), member({})], 'says size="-1"'],
    ['a size beyond counting', [pax(record('size', '9'.repeat(16))), member({})], 'says size="9999999999999999"'],
    ['a time in words', [pax(record('mtime', 'now')), member({})], 'says mtime="now"'],
    ['sparse files', [pax(record('GNU.sparse.major', '1')), member({})], 'holds sparse files'],
    ['a record that is too long', [pax(Buffer.from('99 path=a\n')), member({})], 'damaged'],
    ['a record that is too short', [pax(Buffer.from('8 path=a\n')), member({})], 'damaged'],
    ['a record without a length', [pax(Buffer.from('path=a\n')), member({})], 'damaged'],
    ['a record without a key', [pax(Buffer.from('5 =a\n')), member({})], 'damaged'],
    ['a record without a value', [pax(Buffer.from('7 path\n')), member({})], 'damaged'],
    ['zeros behind the records', [pax(record('path', 'a'), Buffer.alloc(5)), member({})], 'damaged'],
    ['more than a mebibyte', [member({ flag: 'x', size: 1024 * 1024 + 1 })], 'announces 1048577 bytes'],
  ])('refuses %s', async (_, parts, message) => {
    expect(await refusal(archive(...parts))).toContain(message)
  })

  test('a name of 4097 bytes is refused', async () => {
    expect((await only(paxPath(4096), member({})))?.name).toHaveLength(4096)
    expect(await refusal(archive(paxPath(4097), member({})))).toContain('says path="nnn')
  })
})

describe('refuses', () => {
  test.each([
    ['a wrong checksum', archive(member({ checksum: '000001\0 ' })), 'at byte 0: its checksum is wrong'],
    ['a missing checksum', archive(member({ checksum: '\0'.repeat(8) })), 'its checksum is wrong'],
    ['what is no archive', Buffer.from('#!/bin/sh\n'.repeat(100)), 'damaged header at byte 0'],
    ['nothing', Buffer.alloc(0), 'cut off after 0 bytes'],
    ['an archive without an end', member({}), 'cut off after 512 bytes'],
    ['half an end', Buffer.concat([member({}), Buffer.alloc(512)]), 'cut off after 1024 bytes'],
    ['a lone block of zeros', archive(member({}), Buffer.alloc(512), member({})), 'lone block of zeros'],
    ['a second archive', Buffer.concat([archive(member({})), archive(member({}))]), 'more behind its end'],
    ['a name that is not UTF-8', archive(member({ name: Buffer.from('a\xe4', 'latin1') })), '"aä": its name is not'],
    ['content of a directory', archive(member({ flag: '5' }, 'x')), 'a directory has no content, but 1 bytes'],
    ['content of a link', archive(member({ flag: '1', link: 'a' }, 'x')), 'a hardlink has no content'],
    ['a file named like a directory', archive(member({ name: 'a/' })), '"a/": a file has the name of a directory'],
    ['a prefix where none belongs', archive(member({ prefix: 'p', magic: '' })), 'can be read in two ways'],
    [
      'a prefix that star reads otherwise',
      archive(member({ prefix: `${'p/'.repeat(65)}/../../x`, trailer: 'tar\0' })),
      'can be read in two ways',
    ],
  ])('%s', async (_, bytes, message) => {
    expect(await refusal(bytes)).toContain(message)
  })
})

test('zeros may follow the end, as on a tape', async () => {
  expect(await membersOf(Buffer.concat([archive(member({})), Buffer.alloc(9000)]))).toHaveLength(1)
})

test('names keep every byte', async () => {
  expect((await only(member({ name: '\ufeffa\u0301' })))?.name).toBe('\ufeffa\u0301')
})

const SAMPLE = archive(
  member({ name: 'a' }, 'content'),
  pax(record('path', 'ä')),
  member({ name: 'b' }, 'x'.repeat(1000)),
)

test('pieces of any length read the same', async () => {
  const whole = await membersOf(SAMPLE)
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: SAMPLE.length }), async length => {
      expect(await readAll(streamOf(SAMPLE, length))).toEqual(whole)
    }),
  )
})

test('cut off anywhere it is refused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: SAMPLE.length - 1 }), async length => {
      expect(await refusal(SAMPLE.subarray(0, length))).toContain('cut off')
    }),
  )
})

test('with one byte of a header changed it is refused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 147 }), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const damaged = Buffer.from(SAMPLE)
      damaged[at] = (damaged[at] ?? 0) ^ change
      expect(await refusal(damaged)).toContain('damaged header at byte 0')
    }),
  )
})

test('the stream is closed when the reader stops early', async () => {
  let isClosed = false
  async function* stream(): AsyncGenerator<Uint8Array> {
    try {
      yield* streamOf(SAMPLE, 512)
    } finally {
      isClosed = true
    }
  }
  for await (const { name } of readTarHeaders(stream())) {
    expect(name).toBe('a')
    break
  }
  expect(isClosed).toBe(true)
})

describe('what GNU tar writes', () => {
  let dir: string
  const long = `${'d'.repeat(90)}/${'f'.repeat(120)}`
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'muster-tar-'))
    await exec('mkdir', ['-p', join(dir, 'in', 'd'.repeat(90))])
    await writeFile(join(dir, 'in', long), 'long')
    await symlink('t'.repeat(200), join(dir, 'in/link'))
    await exec('ln', [join(dir, 'in', long), join(dir, 'in/other')])
    await exec('mkfifo', [join(dir, 'in/pipe')])
    await exec('mknod', [join(dir, 'in/null'), 'c', '1', '3'])
    await exec('setfattr', ['-n', 'trusted.x', '-v', '0xff00', join(dir, 'in', long)])
    await exec('truncate', ['-s', '1M', join(dir, 'sparse')])
  })
  afterAll(() => rm(dir, { recursive: true }))

  const create = async (...args: string[]): Promise<Buffer> =>
    (await exec('tar', ['-C', dir, '--sort=name', '--mtime=@1700000000', ...args, '-cf', '-', 'in'])).stdout

  const members = [
    { name: 'in/', type: 'directory' },
    { name: `in/${'d'.repeat(90)}/`, type: 'directory', mode: 0o755, uid: 3_000_000, gid: 7, mtime: 1_700_000_000 },
    { name: `in/${long}`, type: 'file', size: 4, mode: 0o644 },
    { name: 'in/link', type: 'symlink', size: 0, linkName: 't'.repeat(200) },
    { name: 'in/null', type: 'char' },
    { name: 'in/other', type: 'hardlink', size: 0, linkName: `in/${long}` },
    { name: 'in/pipe', type: 'fifo' },
  ]

  test.each(['gnu', 'oldgnu', 'pax'])('in %s format', async format => {
    const bytes = await create(`--format=${format}`, '--owner=somebody:3000000', '--group=some:7')
    expect(await membersOf(bytes)).toMatchObject(members)
  })

  test('with extended attributes', async () => {
    const bytes = await create('--format=pax', '--xattrs', '--xattrs-include=*')
    expect((await membersOf(bytes))[2]?.xattrs).toEqual({ 'trusted.x': '/wA=' })
  })

  test.each([
    ['gnu', '1.0', '"sparse": it is a sparse file'],
    ['pax', '0.0', 'holds sparse files'],
    ['pax', '0.1', 'holds sparse files'],
    ['pax', '1.0', 'holds sparse files'],
  ])('sparse files in %s format, version %s, are refused', async (format, version, message) => {
    const args = ['-C', dir, `--format=${format}`, '--sparse', `--sparse-version=${version}`, '-cf', '-', 'sparse']
    expect(await refusal((await exec('tar', args)).stdout)).toContain(message)
  })
})
