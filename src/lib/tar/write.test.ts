import * as fc from 'fast-check'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../exec.ts'
import type { Entry, FileTree } from '../tree/entry.ts'
import { checkArchive } from './check.ts'
import { formatHeaders } from './header.ts'
import { readTarHeaders } from './read.ts'
import { END, membersOf, streamOf } from './testing.ts'
import { writeTar } from './write.ts'

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-write-'))
  await writeFile(join(dir, 'hello'), 'hello\n')
  await writeFile(join(dir, 'large'), Buffer.alloc(2_500_000, 'x'))
  await writeFile(join(dir, 'block'), Buffer.alloc(512, 'b'))
})
afterAll(() => rm(dir, { recursive: true }))

const common = { mode: 0o644, uid: 0, gid: 0, mtime: 1_700_000_000, sha256: '' }
const root: Entry = { ...common, path: '', type: 'directory', mode: 0o755 }

/** Content comes from the file that a path's last part names. */
const treeOf = (...entries: readonly Entry[]): FileTree => ({
  entries,
  locate: file => join(dir, file.path.slice(file.path.lastIndexOf('/') + 1)),
})

async function pack(tree: FileTree, signal?: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  await writeTar(tree, async chunk => void chunks.push(chunk), signal ? { signal } : {})
  return Buffer.concat(chunks)
}

const deep = `usr/${'d'.repeat(120)}/${'e'.repeat(100)}`
const long = 'n'.repeat(200)
const TREE = treeOf(
  root,
  { ...common, path: 'block', type: 'file', size: 512 },
  { ...common, path: 'dev', type: 'directory', mode: 0o755 },
  { ...common, path: 'dev/null', type: 'char', major: 1, minor: 3, mode: 0o666 },
  { ...common, path: 'dev/sdzz9', type: 'block', major: 259, minor: 1_048_575, mode: 0o660, gid: 6 },
  { ...common, path: 'empty', type: 'file', size: 0, mtime: -1 },
  { ...common, path: 'etc', type: 'directory', mode: 0o1777, uid: 3_000_000, gid: 4_000_000 },
  { ...common, path: 'etc/long', type: 'symlink', target: '/t/'.repeat(70), mode: 0o777 },
  { ...common, path: 'etc/mtab', type: 'symlink', target: '../proc/self/mounts', mode: 0o777 },
  {
    ...common,
    path: 'hello',
    type: 'file',
    size: 6,
    mode: 0o4755,
    xattrs: { 'user.a=b%25': '/wAK', 'security.capability': 'AQAAAgAgAAAAAAAAAAAAAAAAAAA=', 'user.empty': '' },
  },
  { ...common, path: 'hello2', type: 'file', size: 6, mode: 0o4755, linkTo: 'hello', xattrs: { 'user.empty': '' } },
  { ...common, path: 'large', type: 'file', size: 2_500_000 },
  { ...common, path: 'pipe', type: 'fifo', major: 0, minor: 0 },
  { ...common, path: 'socket', type: 'socket', major: 0, minor: 0 },
  { ...common, path: 'usr', type: 'directory', mode: 0o755 },
  { ...common, path: `usr/${'d'.repeat(120)}`, type: 'directory', mode: 0o755 },
  { ...common, path: deep, type: 'directory', mode: 0o755 },
  { ...common, path: `${deep}/hello`, type: 'file', size: 6 },
  { ...common, path: `${deep}/${long}`, type: 'directory', mode: 0o755 },
  { ...common, path: 'ünï', type: 'directory', mode: 0o755 },
)

const file = { type: 'file', mode: 0o644, uid: 0, gid: 0, mtime: 1_700_000_000, linkName: '' } as const
const directory = { ...file, type: 'directory', mode: 0o755, size: 0 } as const
const MEMBERS = [
  { ...directory, name: './' },
  { ...file, name: 'block', size: 512 },
  { ...directory, name: 'dev/' },
  { ...file, name: 'dev/null', type: 'char', size: 0, mode: 0o666 },
  { ...file, name: 'dev/sdzz9', type: 'block', size: 0, mode: 0o660, gid: 6 },
  { ...file, name: 'empty', size: 0, mtime: -1 },
  { ...directory, name: 'etc/', mode: 0o1777, uid: 3_000_000, gid: 4_000_000 },
  { ...file, name: 'etc/long', type: 'symlink', size: 0, mode: 0o777, linkName: '/t/'.repeat(70) },
  { ...file, name: 'etc/mtab', type: 'symlink', size: 0, mode: 0o777, linkName: '../proc/self/mounts' },
  {
    ...file,
    name: 'hello',
    size: 6,
    mode: 0o4755,
    xattrs: { 'user.a=b%25': '/wAK', 'security.capability': 'AQAAAgAgAAAAAAAAAAAAAAAAAAA=', 'user.empty': '' },
  },
  { ...file, name: 'hello2', type: 'hardlink', size: 0, mode: 0o4755, linkName: 'hello' },
  { ...file, name: 'large', size: 2_500_000 },
  { ...file, name: 'pipe', type: 'fifo', size: 0 },
  { ...directory, name: 'usr/' },
  { ...directory, name: `usr/${'d'.repeat(120)}/` },
  { ...directory, name: `${deep}/` },
  { ...file, name: `${deep}/hello`, size: 6 },
  { ...directory, name: `${deep}/${long}/` },
  { ...directory, name: 'ünï/' },
]

test('our own reader reads it, and sockets are left out', async () => {
  const archive = await pack(TREE)
  expect(await membersOf(archive)).toEqual(MEMBERS)
  expect(await checkArchive(readTarHeaders(streamOf(archive)))).toEqual({ members: 19, bytes: 2_500_524, devices: 2 })
})

test('GNU tar extracts it as it is', async () => {
  const out = join(dir, 'out')
  await mkdir(out)
  const xattrs = ['--xattrs', '--xattrs-include=*', '--numeric-owner']
  await exec('tar', ['-C', out, ...xattrs, '-xpf', '-'], { input: await pack(TREE) })

  const again = ['-C', out, ...xattrs, '--format=pax', '--sort=name', '-cf', '-', '.']
  const members = await membersOf((await exec('tar', again)).stdout)
  const expected = MEMBERS.map(member => ({
    ...member,
    name: member.name === './' ? './' : `./${member.name}`,
    linkName: member.type === 'hardlink' ? `./${member.linkName}` : member.linkName,
  }))
  expect(members).toEqual(expected)

  const devices = await exec('stat', ['-c', '%t:%T', join(out, 'dev/null'), join(out, 'dev/sdzz9')])
  expect(devices.stdout.toString()).toBe('1:3\n103:fffff\n')
  for (const name of ['block', 'hello', 'large']) await exec('cmp', [join(dir, name), join(out, name)])
  await exec('cmp', [join(dir, 'hello'), join(out, deep, 'hello')])
})

test('GNU tar lists it with numbers for owners, and nothing after the end', async () => {
  const tree = treeOf(root, { ...common, path: 'hello', type: 'file', size: 6, uid: 12, gid: 34 })
  const { stdout } = await exec('tar', ['-tvvf', '-', '--utc', '--full-time'], { input: await pack(tree) })
  expect(stdout.toString()).toBe(
    'drwxr-xr-x 0/0               0 2023-11-14 22:13:20 ./\n-rw-r--r-- 12/34             6 2023-11-14 22:13:20 hello\n',
  )
})

test('the same tree is the same bytes', async () => {
  const sha256 = createHash('sha256')
    .update(await pack(TREE))
    .digest('hex')
  expect(sha256).toBe('4ae86d78cecb15915b788717acf091bcaff892602b2d505ae9dca856478a3fd6')
})

test('two blocks of zeros end it', async () => {
  const archive = await pack(treeOf(root))
  expect(archive).toHaveLength(512 + 1024)
  expect(archive.subarray(512)).toEqual(END)
})

const flagOf = (entry: Entry): number | undefined => formatHeaders(entry)?.[156]

describe('pax says only what ustar cannot', () => {
  const PAX = 'x'.charCodeAt(0)
  const plain: Entry = { ...common, path: 'a', type: 'file', size: 0 }

  test.each<[string, Entry]>([
    ['a name of 100 bytes', { ...plain, path: 'n'.repeat(100) }],
    ['a name of 155 and 100 bytes', { ...plain, path: `${'p'.repeat(155)}/${'n'.repeat(100)}` }],
    ['an owner of 7 digits', { ...plain, uid: 0o7777777 }],
    ['11 digits of bytes', { ...plain, size: 0o77777777777 }],
    ['11 digits of seconds', { ...plain, mtime: 0o77777777777 }],
    ['a target of 100 bytes', { ...common, path: 'a', type: 'symlink', target: 't'.repeat(100) }],
  ])('not %s', (_, entry) => {
    expect(flagOf(entry)).not.toBe(PAX)
  })

  test.each<[string, Entry, object]>([
    ['a name of 101 bytes', { ...plain, path: 'n'.repeat(101) }, { name: 'n'.repeat(101) }],
    ['no slash in a good place', { ...plain, path: `${'p'.repeat(156)}/n` }, { name: `${'p'.repeat(156)}/n` }],
    ['other letters', { ...plain, path: 'ä' }, { name: 'ä' }],
    ['an owner of 8 digits', { ...plain, uid: 0o10000000 }, { uid: 0o10000000 }],
    ['12 digits of bytes', { ...plain, size: 0o100000000000 }, { size: 0o100000000000 }],
    ['12 digits of seconds', { ...plain, mtime: 0o100000000000 }, { mtime: 0o100000000000 }],
    ['time before 1970', { ...plain, mtime: -5 }, { mtime: -5 }],
    ['a target with other letters', { ...common, path: 'a', type: 'symlink', target: 'ä' }, { linkName: 'ä' }],
  ])('but %s', async (_, entry, expected) => {
    expect(flagOf(entry)).toBe(PAX)
    const headers = formatHeaders(entry) ?? Buffer.alloc(0)
    // The content is left out, so only the first member can be read.
    const { value } = await readTarHeaders(streamOf(headers)).next()
    expect(value).toMatchObject(expected)
  })
})

test('whatever a tree holds is read again', async () => {
  const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 120 }).filter(text => !/[\0/]|^\.\.?$/.test(text))
  const path = fc.array(name, { minLength: 1, maxLength: 6 }).map(parts => parts.join('/'))
  const id = fc.integer({ min: 0, max: 0xffff_fffe })
  const xattrs = fc.dictionary(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).map(text => `user.${text}`),
    fc.uint8Array({ maxLength: 2000 }).map(bytes => Buffer.from(bytes).toString('base64')),
  )
  const entry = fc.record({
    path,
    target: path,
    uid: id,
    gid: id,
    mtime: fc.integer(),
    mode: fc.integer({ min: 0, max: 0o7777 }),
    xattrs,
  })
  await fc.assert(
    fc.asyncProperty(entry, async fields => {
      const { path, target, xattrs, ...others } = fields
      expect(await membersOf(await pack(treeOf({ type: 'symlink', ...fields })))).toEqual([
        {
          ...others,
          name: path,
          type: 'symlink',
          size: 0,
          linkName: target,
          ...(Object.keys(xattrs).length > 0 && { xattrs }),
        },
      ])
    }),
  )
})

describe('stops', () => {
  test.each([
    ['shrunk', 7],
    ['grown', 5],
  ])('when a file has %s', async (_, size) => {
    const tree = treeOf(root, { ...common, path: 'hello', type: 'file', size })
    await expect(pack(tree)).rejects.toMatchObject({
      message: `${dir}/hello is not the ${size} bytes it was when the tree was read`,
    })
  })

  test('when a file of whole blocks has grown', async () => {
    const tree = treeOf(root, { ...common, path: 'large', type: 'file', size: 1024 * 1024 })
    await expect(pack(tree)).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  test('when it is told to', async () => {
    await expect(pack(TREE, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough')
  })
})
