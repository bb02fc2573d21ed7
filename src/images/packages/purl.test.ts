import { expect, test } from 'vitest'
import { parseOsRelease } from './os-release.ts'
import type { InstalledPackage, PackageManager } from './package.ts'
import { packageUrl } from './purl.ts'

const one = (manager: PackageManager, name: string, version: string, arch: string): InstalledPackage => ({
  name,
  version,
  arch,
  manager,
  size: 0,
})

test.each([
  [
    'ID=debian\nVERSION_ID=12',
    one('dpkg', 'bash', '5.2.15-2', 'amd64'),
    'pkg:deb/debian/bash@5.2.15-2?arch=amd64&distro=debian-12',
  ],
  ['ID=debian', one('dpkg', 'bash', '5.2.15-2', 'amd64'), 'pkg:deb/debian/bash@5.2.15-2?arch=amd64&distro=debian'],
  [
    'ID=ubuntu\nVERSION_ID="24.04"',
    one('dpkg', 'attr', '1:2.4.47-2+b1', 'amd64'),
    'pkg:deb/ubuntu/attr@1:2.4.47-2%2Bb1?arch=amd64&distro=ubuntu-24.04',
  ],
  [
    'ID=debian\nVERSION_ID=12',
    one('dpkg', 'libstdc++6', '12~rc1', 'i386'),
    'pkg:deb/debian/libstdc%2B%2B6@12~rc1?arch=i386&distro=debian-12',
  ],
  [
    'ID=fedora\nVERSION_ID=25',
    one('rpm', 'curl', '7.50.3-1.fc25', 'i386'),
    'pkg:rpm/fedora/curl@7.50.3-1.fc25?arch=i386&distro=fedora-25',
  ],
  [
    'ID=rocky\nVERSION_ID=9.4',
    one('rpm', 'centerim', '1:4.22.10-1.el6', 'i686'),
    'pkg:rpm/rocky/centerim@4.22.10-1.el6?arch=i686&distro=rocky-9.4&epoch=1',
  ],
  [
    'ID=rhel\nVERSION_ID=9.4',
    one('rpm', 'R', '4^1-1', 'x86_64'),
    'pkg:rpm/redhat/R@4%5E1-1?arch=x86_64&distro=rhel-9.4',
  ],
  [
    'ID=opensuse-leap\nVERSION_ID=15.6',
    one('rpm', 'zsh', '5.6-1', 'x86_64'),
    'pkg:rpm/opensuse/zsh@5.6-1?arch=x86_64&distro=opensuse-leap-15.6',
  ],
  [
    'ID=sles\nVERSION_ID=15.6',
    one('rpm', 'zsh', '5.6-1', 'x86_64'),
    'pkg:rpm/suse/zsh@5.6-1?arch=x86_64&distro=sles-15.6',
  ],
  [
    'ID=alpine\nVERSION_ID=3.20.1',
    one('apk', 'py3-Yaml', '6.0-r3', 'x86_64'),
    'pkg:apk/alpine/py3-yaml@6.0-r3?arch=x86_64&distro=alpine-3.20.1',
  ],
  [
    'ID=debian',
    one('dpkg', 'a', "1!'()*/?#%&=@", 'all'),
    'pkg:deb/debian/a@1%21%27%28%29%2A%2F%3F%23%25%26%3D%40?arch=all&distro=debian',
  ],
])('%j %j', (os, installed, expected) => {
  expect(packageUrl(installed, parseOsRelease(os))).toBe(expected)
})

test.each([
  ['dpkg', 'pkg:deb/debian/a@1?arch=x'],
  ['rpm', 'pkg:rpm/linux/a@1?arch=x'],
  ['apk', 'pkg:apk/alpine/a@1?arch=x'],
] as const)('%s without an os-release', (manager, expected) => {
  expect(packageUrl(one(manager, 'a', '1', 'x'))).toBe(expected)
})
