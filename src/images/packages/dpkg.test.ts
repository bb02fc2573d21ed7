import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { failureOf, temporaryDir } from '../../site/testing.ts'
import { parseDpkgStatus } from './dpkg.ts'
import type { InstalledPackage } from './package.ts'

const STATUS = `Package: libc6
Status: install ok installed
Priority: optional
Installed-Size: 12988
Architecture: amd64
Multi-Arch: same
Source: glibc
Version: 2.36-9+deb12u7
Conffiles:
 /etc/ld.so.conf.d/x86_64-linux-gnu.conf d4e7a7b88a71b5ffd9e2644e71a0cfab
Description: GNU C Library: Shared libraries
 Package: not-a-package
 .
 Version: 9

Package: bash
Essential: yes
Status: install ok installed
Installed-Size: 7164
Architecture: amd64
Version: 5.2.15-2+b2
Source: bash (5.2.15-2)

Package: libc6
Status: install ok installed
Installed-Size: 11000
Architecture: i386
Source: glibc
Version: 2.36-9+deb12u7
X-Nobody-Knows: this field
`

test('packages by name, of several architectures', () => {
  expect(parseDpkgStatus(STATUS)).toEqual([
    { name: 'bash', version: '5.2.15-2+b2', arch: 'amd64', manager: 'dpkg', source: 'bash', size: 7_335_936 },
    { name: 'libc6', version: '2.36-9+deb12u7', arch: 'amd64', manager: 'dpkg', source: 'glibc', size: 13_299_712 },
    { name: 'libc6', version: '2.36-9+deb12u7', arch: 'i386', manager: 'dpkg', source: 'glibc', size: 11_264_000 },
  ])
})

const entry = (status: string): string =>
  `Package: a\n${status === '' ? '' : `Status: ${status}\n`}Architecture: all\nVersion: 1\n\n`

test.each([
  ['install ok installed', 1],
  ['hold ok installed', 1],
  ['deinstall ok installed', 1],
  ['install ok triggers-pending', 1],
  ['install ok triggers-awaited', 1],
  ['', 1],
  ['deinstall ok config-files', 0],
  ['install ok half-configured', 0],
  ['install ok half-installed', 0],
  ['install ok unpacked', 0],
  ['unknown ok not-installed', 0],
  ['install reinstreq installed', 0],
  ['installed', 0],
])('a package with the status %j: %i', (status, count) => {
  expect(parseDpkgStatus(entry(status))).toHaveLength(count)
})

test.each([
  ['', 0],
  ['\n\n \n', 0],
  ['no field at all\n:\n', 0],
  [`${entry('')}${entry('')}`, 1],
  ['PACKAGE: a\nversion:   1  \n', 1],
])('%j: %i', (text, count) => {
  expect(parseDpkgStatus(text)).toHaveLength(count)
})

test.each([
  ['', 0],
  ['Installed-Size: 0\n', 0],
  ['Installed-Size: 12\n', 12_288],
  ['Installed-Size: many\n', 0],
  ['Installed-Size: -5\n', 0],
  ['Installed-Size: 99999999999999999999\n', 0],
])('size of %j', (line, size) => {
  expect(parseDpkgStatus(`Package: a\nVersion: 1\n${line}`)[0]?.size).toBe(size)
})

test.each([
  ['Version: 1\n', 'nothing is not the name of a package'],
  ['Package: a b\nVersion: 1\n', '"a b" is not the name of a package'],
  ['Package: a\u001B[2J\nVersion: 1\n', String.raw`"a\u001b[2J" is not the name of a package`],
  ['Package: a\n', 'nothing is not a version of a'],
  ['Package: a\nVersion:\n', '"" is not a version of a'],
  ['Package: a\nVersion: 1\nArchitecture: ä\n', '"ä" is not an architecture of a'],
])('%j is no entry', async (text, why) => {
  expect(await failureOf(() => parseDpkgStatus(text))).toBe(
    `BUILD_FAILED: the root's dpkg database cannot be read: ${why}`,
  )
})

test('more than any distribution has is refused', async () => {
  const many = Array.from({ length: 100_001 }, (_, index) => `Package: p${index}\nVersion: 1\n`).join('\n')
  expect(await failureOf(() => parseDpkgStatus(many))).toMatch(/more than 100000 packages$/)
  expect(await failureOf(() => parseDpkgStatus('x'.repeat(64 * 2 ** 20 + 1)))).toMatch(/it is too long$/)
})

const lineOf = ({ name, arch, version, size, source = name }: InstalledPackage): string =>
  [name, arch, version, size / 1024, source].join(' ')

test('the same as dpkg-query says of this machine', async () => {
  const dir = await temporaryDir()
  await mkdir(join(dir, 'info'))
  await mkdir(join(dir, 'updates'))
  await copyFile('/var/lib/dpkg/status', join(dir, 'status'))
  const format = '${db:Status-Status} ${Package} ${Architecture} ${Version} ${Installed-Size} ${source:Package}\n'
  const listed = await exec('dpkg-query', [`--admindir=${dir}`, '-W', '-f', format])
  const expected = listed.stdout
    .toString('utf8')
    .split('\n')
    .filter(line => line.startsWith('installed '))
    .map(line => line.slice('installed '.length))
  const found = parseDpkgStatus(await readFile(join(dir, 'status'), 'utf8'))
  expect(found.length).toBeGreaterThan(50)
  expect(found.map(lineOf).sort()).toEqual(expected.sort())
})
