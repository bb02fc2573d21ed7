import { expect, test } from 'vitest'
import type { FileEntry } from '../tree/entry.ts'
import { NO_FRAGMENT, NO_XATTRS } from './format.ts'
import { encodeFile } from './inodes.ts'

const entry: FileEntry = { type: 'file', path: 'f', mode: 0o644, uid: 0, gid: 0, mtime: 9, size: 5, sha256: 'a' }
const fields = { entry, number: 7, owner: 0, group: 1, xattrs: NO_XATTRS }
const place = { start: 96, blocks: [], fragment: 2, offset: 10 }

const words = (bytes: Buffer): string[] => bytes.toString('hex').match(/.{1,8}/g) ?? []

test('a file has a short inode as long as that will do', () => {
  expect(words(encodeFile(fields, 1, place))).toEqual([
    '0200a401',
    '00000100',
    '09000000',
    '07000000',
    '60000000',
    '02000000',
    '0a000000',
    '05000000',
  ])
})

test.each([
  ['with two names', fields, 2, place, '0900a401 6000000000000000 0500000000000000 0000000000000000 02000000'],
  [
    'of 4 GiB',
    { ...fields, entry: { ...entry, size: 2 ** 32 } },
    1,
    place,
    '0900a401 6000000000000000 0000000001000000 0000000000000000 01000000',
  ],
  [
    'beyond the first 4 GiB',
    fields,
    1,
    { ...place, start: 2 ** 32 + 1 },
    '0900a401 0100000001000000 0500000000000000 0000000000000000 01000000',
  ],
  [
    'with holes',
    { ...fields, entry: { ...entry, size: 131_072 * 2 + 1 } },
    1,
    { ...place, fragment: NO_FRAGMENT, offset: 0, blocks: [0, 77, 0] },
    '0900a401 6000000000000000 0100040000000000 0100020000000000 01000000',
  ],
  [
    'with attributes',
    { ...fields, xattrs: 3 },
    1,
    place,
    '0900a401 6000000000000000 0500000000000000 0000000000000000 01000000',
  ],
])('a file %s has a long one', (_, fields, links, place, expected) => {
  const bytes = encodeFile(fields, links, place).toString('hex')
  expect([
    bytes.slice(0, 8),
    bytes.slice(32, 48),
    bytes.slice(48, 64),
    bytes.slice(64, 80),
    bytes.slice(80, 88),
  ]).toEqual(expected.split(' '))
})
