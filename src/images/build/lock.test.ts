import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Lock, type LockedPackage, lockText, lockedIdentity, parseLock, withAddresses } from './lock.ts'

const HEX = 'ab'.repeat(32)

const PACKAGE: LockedPackage = {
  name: 'bash',
  version: '5.2.15-2+b7',
  arch: 'amd64',
  sha256: HEX,
  size: 1_490_536,
  repository: 'debian',
  path: 'pool/main/b/bash/bash_5.2.15-2+b7_amd64.deb',
  file: 'bash_5.2.15-2+b7_amd64.deb',
}

const LOCK: Lock = {
  schema: 'muster.lock/1',
  time: '2026-03-01T12:00:00Z',
  base: {
    request: HEX,
    repositories: { debian: { urls: ['http://mirror.example/debian'], suite: 'bookworm', components: ['main'] } },
    packages: [PACKAGE, { ...PACKAGE, name: 'zsh', file: 'zsh_1_amd64.deb' }],
  },
  packages: { request: HEX, repositories: {}, packages: [] },
}

test('one package per line, so that a change of versions is a readable diff', () => {
  expect(lockText(LOCK)).toBe(`{
  "schema": "muster.lock/1",
  "time": "2026-03-01T12:00:00Z",
  "base": {"request":"${HEX}","repositories":{"debian":{"urls":["http://mirror.example/debian"],"suite":"bookworm","components":["main"]}},
    "packages": [
      {"name":"bash","version":"5.2.15-2+b7","arch":"amd64","sha256":"${HEX}","size":1490536,"repository":"debian","path":"pool/main/b/bash/bash_5.2.15-2+b7_amd64.deb","file":"bash_5.2.15-2+b7_amd64.deb"},
      {"name":"zsh","version":"5.2.15-2+b7","arch":"amd64","sha256":"${HEX}","size":1490536,"repository":"debian","path":"pool/main/b/bash/bash_5.2.15-2+b7_amd64.deb","file":"zsh_1_amd64.deb"}
    ]},
  "packages": {"request":"${HEX}","repositories":{},
    "packages": [

    ]}
}
`)
})

test('a base that is no set of packages is its pin', () => {
  const lock: Lock = {
    schema: LOCK.schema,
    time: LOCK.time,
    base: { request: HEX, pin: { image: 'sha256:1', n: [1, null] } },
  }
  expect(lockText(lock)).toBe(`{
  "schema": "muster.lock/1",
  "time": "2026-03-01T12:00:00Z",
  "base": {"request":"${HEX}","pin":{"image":"sha256:1","n":[1,null]}}
}
`)
})

test.each<readonly [string, Lock]>([
  ['with everything', LOCK],
  ['with a time only', { schema: LOCK.schema, time: LOCK.time }],
  ['with a pin', { schema: LOCK.schema, time: LOCK.time, base: { request: HEX, pin: null } }],
])('a lock %s is read as it was written', (_, lock) => {
  expect(parseLock(lockText(lock))).toEqual(lock)
})

test('so is any', () => {
  const word = fc.string({ minLength: 1, unit: 'binary' })
  const one = fc.record({ name: word, version: word, arch: word, repository: word, path: word, size: fc.nat() })
  const set = fc.record({
    request: fc.constant(HEX),
    repositories: fc.dictionary(
      fc.constantFrom('debian', 'extra', 'a b', '"'),
      fc.record({ urls: fc.array(word, { minLength: 1 }), suite: word }, { requiredKeys: ['urls'] }),
      { noNullPrototype: true },
    ),
    packages: fc.array(one.map(some => ({ ...some, sha256: HEX, file: 'a.deb' }))),
  })
  const head = { schema: fc.constant(LOCK.schema), time: fc.constant(LOCK.time) }
  fc.assert(
    fc.property(fc.record({ ...head, base: set, packages: set }, { requiredKeys: ['schema', 'time'] }), lock => {
      expect(parseLock(lockText(lock))).toEqual(lock)
    }),
  )
})

describe('mirrors may change without moving a lock', () => {
  const set = {
    request: HEX,
    repositories: {
      debian: { urls: ['http://old.example/debian'], suite: 'bookworm' },
      extra: { urls: ['http://extra.example/'] },
    },
    packages: [PACKAGE],
  }
  const moved = withAddresses(set, [
    { name: 'debian', urls: ['http://new.example/debian', 'http://other.example/debian'] },
    { name: 'unrelated', urls: ['http://unrelated.example/'] },
  ])

  test('the same packages from where they are to be had now', () => {
    expect(moved).toEqual({
      ...set,
      repositories: {
        debian: { urls: ['http://new.example/debian', 'http://other.example/debian'], suite: 'bookworm' },
        extra: { urls: ['http://extra.example/'] },
      },
    })
    expect(set.repositories.debian.urls).toEqual(['http://old.example/debian'])
  })

  test('is the same lock, and so it is at another time', () => {
    const lock: Lock = { schema: LOCK.schema, time: LOCK.time, base: set, packages: set }
    const other: Lock = { ...lock, time: '2027-01-01T00:00:00Z', base: moved, packages: moved }
    expect(lockedIdentity(other)).toEqual(lockedIdentity(lock))
  })

  test.each<readonly [string, Partial<Lock>]>([
    ['another package', { packages: { ...set, packages: [{ ...PACKAGE, sha256: 'cd'.repeat(32) }] } }],
    ['one more', { packages: { ...set, packages: [PACKAGE, PACKAGE] } }],
    ['another base', { base: { ...set, packages: [] } }],
    ['a base of another kind', { base: { request: HEX, pin: 'sha256:1' } }],
  ])('is another one with %s', (_, change) => {
    const lock: Lock = { schema: LOCK.schema, time: LOCK.time, base: set, packages: set }
    expect(lockedIdentity({ ...lock, ...change })).not.toEqual(lockedIdentity(lock))
  })
})

describe('no lock of ours', () => {
  const changed = (change: object): string => JSON.stringify({ ...LOCK, ...change })
  const withPackage = (change: object): string =>
    changed({ packages: { request: HEX, repositories: {}, packages: [{ ...PACKAGE, ...change }] } })

  test('the one these are made of is', () => {
    expect(parseLock(withPackage({}))).toBeDefined()
  })

  test.each<readonly [string, string]>([
    ['nothing', ''],
    ['half of it', lockText(LOCK).slice(0, 200)],
    ['no map', '[]'],
    ['another schema', changed({ schema: 'muster.lock/2' })],
    ['no time', changed({ time: undefined })],
    ['a time that is none', changed({ time: 'yesterday' })],
    ['a key more', changed({ zzz: 1 })],
    ['a base without a pin', changed({ base: { request: HEX } })],
    ['a request that is no digest', changed({ base: { request: 'ab', pin: 1 } })],
    [
      'a repository without an address',
      changed({ packages: { request: HEX, repositories: { a: { urls: [] } }, packages: [] } }),
    ],
    ['a package without a name', withPackage({ name: '' })],
    ['a digest in capitals', withPackage({ sha256: HEX.toUpperCase() })],
    ['a digest with something behind it', withPackage({ sha256: `${HEX}\n` })],
    ['less than nothing', withPackage({ size: -1 })],
    ['half a byte', withPackage({ size: 0.5 })],
    ['a file elsewhere', withPackage({ file: '../bash.deb' })],
    ['a file in a folder', withPackage({ file: 'a/bash.deb' })],
    ['a file that would be an option', withPackage({ file: '-bash.deb' })],
    ['a hidden file', withPackage({ file: '.bash.deb' })],
    ['a file without a name', withPackage({ file: '' })],
    ['a key more in a package', withPackage({ zzz: 1 })],
  ])('%s', (_, text) => {
    expect(parseLock(text)).toBeUndefined()
  })
})
