import { expect, test } from 'vitest'
import { type PackageDatabase, packageDatabase } from './database.ts'

test.each<[name: string, paths: string[], expected: PackageDatabase | undefined]>([
  ['Debian', ['etc', 'var/lib/dpkg/status'], { manager: 'dpkg', files: ['var/lib/dpkg/status'] }],
  [
    'distroless',
    ['var/lib/dpkg', 'var/lib/dpkg/status.d', 'var/lib/dpkg/status.d/libc6', 'var/lib/dpkg/status.d/libc6.md5sums'],
    { manager: 'dpkg', files: [], directory: 'var/lib/dpkg/status.d' },
  ],
  [
    'distroless with more installed into it',
    ['var/lib/dpkg/status.d', 'var/lib/dpkg/status'],
    { manager: 'dpkg', files: ['var/lib/dpkg/status'], directory: 'var/lib/dpkg/status.d' },
  ],
  ['Alpine', ['lib/apk/db/installed'], { manager: 'apk', files: ['lib/apk/db/installed'] }],
  ['Alpine with a merged /usr', ['usr/lib/apk/db/installed'], { manager: 'apk', files: ['usr/lib/apk/db/installed'] }],
  [
    'Red Hat 9',
    ['var/lib/rpm', 'var/lib/rpm/rpmdb.sqlite'],
    { manager: 'rpm', files: ['var/lib/rpm/rpmdb.sqlite'], dbpath: 'var/lib/rpm' },
  ],
  [
    'Red Hat 8',
    ['var/lib/rpm/Packages', 'var/lib/rpm/Name'],
    { manager: 'rpm', files: ['var/lib/rpm/Packages'], dbpath: 'var/lib/rpm' },
  ],
  [
    'Fedora',
    ['usr/lib/sysimage/rpm/rpmdb.sqlite', 'var/lib/rpm'],
    { manager: 'rpm', files: ['usr/lib/sysimage/rpm/rpmdb.sqlite'], dbpath: 'usr/lib/sysimage/rpm' },
  ],
  [
    'SUSE',
    ['usr/lib/sysimage/rpm/Packages.db', 'var/lib/rpm/Packages'],
    { manager: 'rpm', files: ['usr/lib/sysimage/rpm/Packages.db'], dbpath: 'usr/lib/sysimage/rpm' },
  ],
  [
    'Debian with rpm in it',
    ['etc/debian_version', 'var/lib/dpkg/status', 'var/lib/rpm/rpmdb.sqlite'],
    { manager: 'dpkg', files: ['var/lib/dpkg/status'] },
  ],
  [
    'Red Hat with dpkg in it',
    ['etc/redhat-release', 'var/lib/dpkg/status', 'var/lib/rpm/rpmdb.sqlite'],
    { manager: 'rpm', files: ['var/lib/rpm/rpmdb.sqlite'], dbpath: 'var/lib/rpm' },
  ],
  ['a tree made by hand', ['bin/busybox', 'var/lib/dpkg', 'var/lib/rpm'], undefined],
  ['nothing', [], undefined],
])('%s', (_, paths, expected) => {
  const set = new Set(paths)
  expect(packageDatabase(set)).toEqual(expected)
  expect(packageDatabase(path => set.has(path))).toEqual(expected)
})
