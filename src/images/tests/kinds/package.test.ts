import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exec } from '../../../lib/exec.ts'
import { temporaryDir } from '../../../site/testing.ts'
import { outcomesOf, treeSubject } from '../testing.ts'

const CHECKS = `package:
  tiny: { installed: true, versions: ["1.2.3-4"] }
  other: { name: tiny, installed: true, versions: { contain-element: "1.0" } }
  absent: { installed: false, versions: ["1"] }
  wanted: { installed: true }
`
const OUTCOMES = [
  'tiny installed: passed',
  'tiny versions: passed',
  'other installed: passed',
  'other versions: failed, ["1.2.3-4"]',
  'absent installed: passed',
  'absent versions: skipped, installed is false',
  'wanted installed: failed, false',
]

const STATUS = `Package: tiny
Status: install ok installed
Maintainer: nobody <nobody@example.org>
Architecture: all
Version: 1.2.3-4
Description: small

Package: absent
Status: deinstall ok config-files
Maintainer: nobody <nobody@example.org>
Architecture: all
Version: 1
Description: only its settings are left
`

const APK = `C:Q1
P:tinyer
V:9-r0

C:Q1
P:tiny
V:1.2.3-4
A:x86_64
`

/** A package that holds nothing, noted down as installed. */
async function rpmDatabase(dir: string): Promise<void> {
  const work = await temporaryDir()
  const spec =
    'Name: tiny\nVersion: 1.2.3\nRelease: 4\nSummary: small\nLicense: MIT\nBuildArch: noarch\n%description\nsmall\n%files\n'
  await writeFile(join(work, 'tiny.spec'), spec)
  await exec('rpmbuild', ['-bb', '--quiet', '--define', `_topdir ${work}`, join(work, 'tiny.spec')])
  const database = join(dir, 'var/lib/rpm')
  await mkdir(database, { recursive: true })
  const file = join(work, 'RPMS/noarch/tiny-1.2.3-4.noarch.rpm')
  await exec('rpm', ['--dbpath', database, '--install', '--justdb', '--nodeps', file])
}

describe('packages are those of', () => {
  test('dpkg', async () => {
    const subject = await treeSubject({ 'var/lib/dpkg/status': STATUS })
    expect(await outcomesOf(subject, CHECKS)).toEqual(OUTCOMES)
  })

  test('apk', async () => {
    const subject = await treeSubject({ 'lib/apk/db/installed': APK }, undefined, ['sh'])
    expect(await outcomesOf(subject, CHECKS)).toEqual(OUTCOMES)
  })

  test('nobody, where there is no database', async () => {
    expect(await outcomesOf(await treeSubject({}), 'package: { tiny: { installed: false } }')).toEqual([
      'tiny installed: failed, the image has no packages of dpkg, rpm or apk',
    ])
  })

  test('a program that is not in the image', async () => {
    const subject = await treeSubject({ 'var/lib/dpkg/status': STATUS }, undefined, ['sh'])
    expect(await outcomesOf(subject, 'package: { tiny: { installed: false } }')).toEqual([
      'tiny installed: failed, there is no dpkg-query in the image to find out with',
    ])
  })

  test('rpm', async () => {
    const subject = await treeSubject({ 'etc/rpm/macros': '%_dbpath /var/lib/rpm\n' }, rpmDatabase)
    expect(await outcomesOf(subject, CHECKS)).toEqual(OUTCOMES)
  })
})
