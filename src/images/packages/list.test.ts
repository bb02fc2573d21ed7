import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { failureOf } from '../../site/testing.ts'
import { packageListText, parsePackageList } from './list.ts'
import { type InstalledPackage, tidyPackages } from './package.ts'

const BASH: InstalledPackage = {
  size: 7_335_936,
  source: 'bash',
  manager: 'dpkg',
  arch: 'amd64',
  version: '5.2.15-2+b2',
  name: 'bash',
}
const ZLIB: InstalledPackage = {
  name: 'zlib',
  version: '1.2.11-40.el9',
  arch: 'x86_64',
  manager: 'rpm',
  licence: 'zlib and "Boost"',
  size: 0,
}

const TEXT = `{"schema":"muster.packages/1","packages":[
{"name":"bash","version":"5.2.15-2+b2","arch":"amd64","manager":"dpkg","source":"bash","size":7335936},
{"name":"zlib","version":"1.2.11-40.el9","arch":"x86_64","manager":"rpm","licence":"zlib and \\"Boost\\"","size":0}
]}
`

test('a package per line, whatever order they come in', () => {
  expect(packageListText([BASH, ZLIB])).toBe(TEXT)
  expect(packageListText([ZLIB, BASH, BASH])).toBe(TEXT)
  expect(packageListText([])).toBe('{"schema":"muster.packages/1","packages":[]}\n')
})

test('and read again', () => {
  expect(parsePackageList(TEXT)).toEqual([BASH, ZLIB])
  expect(parsePackageList(packageListText([]))).toEqual([])
})

const word = fc.stringMatching(/^[a-z0-9.+~:-]{1,12}$/)
const anyPackage: fc.Arbitrary<InstalledPackage> = fc.record(
  {
    name: word,
    version: word,
    arch: fc.constantFrom('amd64', 'i386', 'all'),
    manager: fc.constantFrom('dpkg', 'rpm', 'apk'),
    source: word,
    licence: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
    size: fc.maxSafeNat(),
  },
  { requiredKeys: ['name', 'version', 'arch', 'manager', 'size'] },
)

test('any list comes back as it was', () => {
  fc.assert(
    fc.property(fc.array(anyPackage, { maxLength: 20 }), packages => {
      expect(parsePackageList(packageListText(packages))).toEqual(tidyPackages(packages))
    }),
  )
})

const listOf = (one: object): string => JSON.stringify({ schema: 'muster.packages/1', packages: [one] })

test.each([
  ['', 'it is not JSON'],
  ['[]', 'it: Invalid input: expected object, received array'],
  ['{"schema":"muster.packages/2","packages":[]}', 'schema: Invalid input: expected "muster.packages/1"'],
  ['{"schema":"muster.packages/1"}', 'packages: Invalid input: expected array, received undefined'],
  [listOf({ ...BASH, extra: 1 }), 'packages.0: Unrecognized key: "extra"'],
  [listOf({ ...BASH, size: -1 }), 'packages.0.size: Too small: expected number to be >=0'],
  [listOf({ ...BASH, size: 1.5 }), 'packages.0.size: Invalid input: expected int, received number'],
  [listOf({ ...BASH, name: 'a b' }), 'packages.0.name: is not a word'],
  [listOf({ ...BASH, version: undefined }), 'packages.0.version: Invalid input: expected string, received undefined'],
])('%j is no list', async (text, why) => {
  expect(await failureOf(() => parsePackageList(text))).toBe(
    `IMAGE_DAMAGED: the list of packages cannot be read: ${why}`,
  )
})
