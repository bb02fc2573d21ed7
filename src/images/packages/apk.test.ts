import { expect, test } from 'vitest'
import { failureOf } from '../../site/testing.ts'
import { parseApkInstalled } from './apk.ts'

const INSTALLED = `C:Q1qKcZ+j23xssAXmgQhkOO8dHnbWw=
P:musl
V:1.2.5-r0
A:x86_64
S:407278
I:667648
T:the musl c library (libc) implementation
U:https://musl.libc.org/
L:MIT
o:musl
m:Somebody <somebody@example.org>
t:1709216023
c:7f9a0ca6dc04bc97c9d29ed9ea3ff2c3cb1ef1d5
p:so:libc.musl-x86_64.so.1=1
F:lib
R:ld-musl-x86_64.so.1
a:0:0:755
Z:Q1cSLrUCEcJvC0HxwPfS+4ZXb2Cbo=
R:libc.musl-x86_64.so.1

C:Q1uM1WpvGDVDZ9sVvaSyxBhv9dxG0=
P:busybox
V:1.36.1-r29
A:x86_64
I:962560
L:GPL-2.0-only
o:busybox
r:busybox-initscripts
q:1000
F:
F:bin
M:0:0:755
`

test('packages by name, without their files', () => {
  expect(parseApkInstalled(INSTALLED)).toEqual([
    {
      name: 'busybox',
      version: '1.36.1-r29',
      arch: 'x86_64',
      manager: 'apk',
      source: 'busybox',
      licence: 'GPL-2.0-only',
      size: 962_560,
    },
    {
      name: 'musl',
      version: '1.2.5-r0',
      arch: 'x86_64',
      manager: 'apk',
      source: 'musl',
      licence: 'MIT',
      size: 667_648,
    },
  ])
})

test('as little as there may be', () => {
  expect(parseApkInstalled('')).toEqual([])
  expect(parseApkInstalled('\n\n')).toEqual([])
  expect(parseApkInstalled('P:a\nV:1')).toEqual([{ name: 'a', version: '1', arch: 'noarch', manager: 'apk', size: 0 }])
})

test('a licence is one line of text', () => {
  const found = parseApkInstalled(`P:a\nV:1\nL:  MIT\t\u001B[31m AND\rzlib ${'x'.repeat(5000)}\n`)
  expect(found[0]?.licence?.slice(0, 20)).toBe('MIT [31m AND zlib xx')
  expect(found[0]?.licence).toHaveLength(2000)
})

test('an entry without a name or a version is damage', async () => {
  expect(await failureOf(() => parseApkInstalled('V:1\n'))).toBe(
    "BUILD_FAILED: the root's apk database cannot be read: nothing is not the name of a package",
  )
  expect(await failureOf(() => parseApkInstalled('P:a\n'))).toBe(
    "BUILD_FAILED: the root's apk database cannot be read: nothing is not a version of a",
  )
})
