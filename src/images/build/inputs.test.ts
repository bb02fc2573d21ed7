import { chmod, chown, mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { directoryOf } from '../../site/testing.ts'
import { digestOf, digestOfFiles } from './inputs.ts'

describe('the digest of a value', () => {
  test('is the sha256 of its one text', () => {
    // printf '{"a":[1,"x",null],"b":true}' | sha256sum
    expect(digestOf({ b: true, a: [1, 'x', null] })).toBe(
      '4d7b28d08614fa6b95c30756c0ebb1630591378c477e0943d35ac08f97b604a3',
    )
  })

  test('does not depend on the order of keys, at any depth', () => {
    expect(digestOf({ a: 1, b: { c: 2, d: [{ e: 3, f: 4 }] } })).toBe(
      digestOf({ b: { d: [{ f: 4, e: 3 }], c: 2 }, a: 1 }),
    )
  })

  test('does not count a key without a value', () => {
    expect(digestOf({ a: 1, b: undefined })).toBe(digestOf({ a: 1 }))
  })

  test.each<readonly [string, unknown, unknown]>([
    ['the order of a list', [1, 2], [2, 1]],
    ['a number and its text', 1, '1'],
    ['nothing and an empty text', null, ''],
    ['nothing and the text null', null, 'null'],
    ['a list and a map of the same', ['a'], { 0: 'a' }],
    ['an empty list and an empty map', [], {}],
    ['a list in a list', [['a'], ['b']], [['a', 'b']]],
    ['two texts and one with a comma', ['a', 'b'], ['a,b']],
    ['what looks like the end of a text', ['a"', 'b'], ['a', '"b']],
    ['a key and its value', { a: 'b' }, { b: 'a' }],
    ['a key that is null and one that is not there', { a: null }, {}],
    ['true and 1', true, 1],
  ])('tells apart %s', (_, one, other) => {
    expect(digestOf(one)).not.toBe(digestOf(other))
  })

  test('is the same for two values exactly when they are the same but for the order of keys', () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([key, item]) => [key, reversed(item)]),
      )
    }
    // Few values, so that some are the same.
    const leaf = fc.constantFrom(null, 0, 1, '', 'a', ',', '"', 'b":1', true)
    const { value } = fc.letrec(tie => ({
      value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('value'), { maxLength: 2 }), tie('map')),
      map: fc.dictionary(fc.constantFrom('a', 'b', '"', 'a":0,"b'), tie('value'), {
        maxKeys: 2,
        noNullPrototype: true,
      }),
    }))
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(digestOf(reversed(a))).toBe(digestOf(a))
        expect(digestOf(a) === digestOf(b)).toBe(isDeepStrictEqual(a, b))
      }),
      { numRuns: 500 },
    )
  })
})

describe('the digest of files', () => {
  const FILES = { 'play.yaml': '- hosts: all\n', 'roles/a/tasks.yaml': '[]\n', 'roles/b/tasks.yaml': '[]\n' }

  test('is the same for the same files elsewhere, whoever owns them and whenever they were written', async () => {
    const [here, there] = [await directoryOf(FILES), await directoryOf(FILES)]
    await chown(join(there, 'play.yaml'), 1000, 1000)
    await utimes(join(there, 'play.yaml'), 1, 1)
    // Who checks out a repository may have another umask.
    await chmod(join(there, 'play.yaml'), 0o600)
    await chmod(join(there, 'roles'), 0o700)
    expect(await digestOfFiles(there)).toBe(await digestOfFiles(here))
  })

  test.each<readonly [string, (dir: string) => Promise<void>]>([
    ['a byte', dir => writeFile(join(dir, 'play.yaml'), '- hosts: any\n')],
    ['a name', dir => rename(join(dir, 'play.yaml'), join(dir, 'site.yaml'))],
    ['a name further down', dir => rename(join(dir, 'roles/b'), join(dir, 'roles/c'))],
    ['a file more', dir => writeFile(join(dir, 'roles/c'), '')],
    ['a hidden file more', dir => writeFile(join(dir, '.hidden'), '')],
    ['an empty folder more', dir => mkdir(join(dir, 'empty'))],
    ['a file less', dir => rm(join(dir, 'roles/a/tasks.yaml'))],
    ['the executable bit', dir => chmod(join(dir, 'play.yaml'), 0o755)],
    [
      'a file that becomes a link to the same',
      async dir => {
        await rm(join(dir, 'roles/b/tasks.yaml'))
        await symlink('../a/tasks.yaml', join(dir, 'roles/b/tasks.yaml'))
      },
    ],
  ])('changes with %s', async (_, change) => {
    const dir = await directoryOf(FILES)
    const before = await digestOfFiles(dir)
    await change(dir)
    expect(await digestOfFiles(dir)).not.toBe(before)
  })

  test('of a single file', async () => {
    const dir = await directoryOf({ a: 'same', b: 'same', c: 'other' })
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(name => digestOfFiles(join(dir, name))))
    expect(a).toBe(b)
    expect(a).not.toBe(c)
  })

  test('a link counts for where it leads, not for what is there', async () => {
    const dir = await directoryOf({ outside: '1' })
    await mkdir(join(dir, 'folder'))
    await symlink('../outside', join(dir, 'folder/link'))
    const before = await digestOfFiles(join(dir, 'folder'))
    await writeFile(join(dir, 'outside'), '2')
    expect(await digestOfFiles(join(dir, 'folder'))).toBe(before)
    await rm(join(dir, 'folder/link'))
    await symlink('../elsewhere', join(dir, 'folder/link'))
    expect(await digestOfFiles(join(dir, 'folder'))).not.toBe(before)
  })
})
