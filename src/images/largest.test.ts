import { expect, test } from 'vitest'
import type { Entry, FileEntry } from '../lib/tree/entry.ts'
import { largest, largestText } from './largest.ts'
import type { InstalledPackage } from './packages/package.ts'

const file = (path: string, size: number, linkTo?: string): FileEntry => ({
  path,
  type: 'file',
  mode: 0o644,
  uid: 0,
  gid: 0,
  mtime: 0,
  size,
  sha256: '',
  ...(linkTo !== undefined && { linkTo }),
})

const pack = (name: string, size: number): InstalledPackage => ({
  name,
  version: '1.0-1',
  arch: 'amd64',
  manager: 'dpkg',
  size,
})

const paths = (entries: readonly Entry[], count?: number): string[] =>
  largest([], entries, count).directories.map(({ path, size }) => `${path} ${size}`)

test('a directory with everything below it', () => {
  expect(paths([file('usr/bin/a', 10), file('usr/lib/b', 30), file('usr/lib/x/c', 20), file('etc/d', 5)])).toEqual([
    'usr 60',
    'usr/lib 50',
    'usr/lib/x 20',
    'usr/bin 10',
    'etc 5',
  ])
})

test('left out when one below it is more than nine tenths of it', () => {
  expect(paths([file('usr/lib/modules/a', 910), file('usr/lib/b', 90)])).toEqual(['usr/lib/modules 910'])
  expect(paths([file('usr/lib/modules/a', 900), file('usr/lib/b', 100)])).toEqual([
    'usr/lib 1000',
    'usr/lib/modules 900',
  ])
})

test('one large file is no reason to leave its directory out', () => {
  expect(paths([file('boot/initrd.img', 1000), file('boot/config', 1)])).toEqual(['boot 1001'])
})

test('hard links count once, where the first name is', () => {
  const entries = [file('opt/a', 100), file('opt/b', 100, 'opt/a'), file('srv/c', 100, 'opt/a'), file('srv/d', 1)]
  expect(largest([], entries)).toMatchObject({ total: 101 })
  expect(paths(entries)).toEqual(['opt 100', 'srv 1'])
})

test('as many as asked for, twenty unless said; of equal ones by name', () => {
  const entries = Array.from({ length: 30 }, (_, index) => file(`d${String(index).padStart(2, '0')}/f`, 7))
  expect(paths(entries, 3)).toEqual(['d00 7', 'd01 7', 'd02 7'])
  expect(paths(entries)).toHaveLength(20)
  const packages = Array.from({ length: 30 }, (_, index) => pack(`p${String(index).padStart(2, '0')}`, index))
  expect(largest(packages, []).packages.map(({ name }) => name)).toEqual(
    packages
      .slice(10)
      .reverse()
      .map(({ name }) => name),
  )
  expect(largest([pack('b', 1), pack('a', 1)], [], 1).packages).toEqual([pack('a', 1)])
})

test('nothing but the root, and empty directories', () => {
  const root: Entry = { path: '', type: 'directory', mode: 0o755, uid: 0, gid: 0, mtime: 0 }
  expect(largest([], [root, { ...root, path: 'empty' }])).toEqual({ total: 0, packages: [], directories: [] })
  expect(largest([], [root, file('init', 12)])).toEqual({ total: 12, packages: [], directories: [] })
})

test('for people', () => {
  const found = largest(
    [pack('bash', 7_335_936), pack('linux-image-6.1.0-18-amd64', 401_000_000), pack('tzdata', 4000)],
    [file('usr/lib/modules/a', 1_100_000_000), file('usr/lib/b', 212_000_000), file('usr/bin/c', 900)],
  )
  expect(largestText(found)).toBe(`total 1.3 GB

largest packages
  401 MB  linux-image-6.1.0-18-amd64 1.0-1
  7.3 MB  bash 1.0-1
  4.0 kB  tzdata 1.0-1

largest directories
  1.3 GB  /usr/lib
  1.1 GB  /usr/lib/modules
   900 B  /usr/bin
`)
  expect(largestText(largest([], []))).toBe('total 0 B\n')
})
