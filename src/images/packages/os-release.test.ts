import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type OsRelease, parseOsRelease } from './os-release.ts'

test.each<[text: string, expected: OsRelease]>([
  [
    `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
ID=debian
HOME_URL="https://www.debian.org/"
`,
    { id: 'debian', idLike: [], version: '12', name: 'Debian GNU/Linux 12 (bookworm)', family: 'debian' },
  ],
  [
    'NAME="Rocky Linux"\nVERSION_ID="9.4"\nID="rocky"\nID_LIKE="rhel centos fedora"\n',
    { id: 'rocky', idLike: ['rhel', 'centos', 'fedora'], version: '9.4', name: 'Rocky Linux', family: 'redhat' },
  ],
  [
    'ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\n',
    { id: 'opensuse-leap', idLike: ['suse', 'opensuse'], version: '15.6', family: 'suse' },
  ],
  [
    'ID=alpine\nVERSION_ID=3.20.1\nNAME="Alpine Linux"\n',
    { id: 'alpine', idLike: [], version: '3.20.1', name: 'Alpine Linux', family: 'alpine' },
  ],
  ['ID=arch\nBUILD_ID=rolling\n', { id: 'arch', idLike: [], family: 'arch' }],
  ['', { id: 'linux', idLike: [], family: 'other' }],
])('%j', (text, expected) => {
  expect(parseOsRelease(text)).toEqual(expected)
})

test.each([
  ['ubuntu', 'debian', 'debian'],
  ['linuxmint', 'ubuntu debian', 'debian'],
  ['rhel', 'fedora', 'redhat'],
  ['fedora', '', 'redhat'],
  ['almalinux', 'rhel centos fedora', 'redhat'],
  ['ol', 'fedora', 'redhat'],
  ['sles', 'suse', 'suse'],
  ['sle_hpc', 'suse', 'suse'],
  ['sle-micro', '', 'suse'],
  ['opensuse-tumbleweed', 'opensuse suse', 'suse'],
  ['endeavouros', 'arch', 'arch'],
  ['nixos', '', 'other'],
  ['homemade', 'nobody debian', 'debian'],
])('%s, like %j, is of the family %s', (id, like, family) => {
  expect(parseOsRelease(`ID=${id}\nID_LIKE="${like}"\n`).family).toBe(family)
})

test.each([
  ['NAME=plain', 'plain'],
  ['NAME=', undefined],
  ['NAME=""', undefined],
  [String.raw`NAME=a\ b`, 'a b'],
  ['NAME=a b', undefined],
  ['NAME=\'single $x "y"\'', 'single $x "y"'],
  [String.raw`NAME='a\b'`, String.raw`a\b`],
  [String.raw`NAME="\"q\" \$x \\ \` \n"`, String.raw`"q" $x \ ` + '` ' + String.raw`\n`],
  ['NAME="open', undefined],
  ['NAME="a"b"', undefined],
  [`NAME="a"'b'`, undefined],
  ['  NAME="indented"  ', 'indented'],
  ['NAME="Windows"\r', 'Windows'],
  ['# NAME=comment', undefined],
  ['name=lower', undefined],
  ['NAME =x', undefined],
  ['NAME=first\nNAME=last', 'last'],
  ['NAME="tab\tand\u001B[31mred"', 'taband[31mred'],
  ['NAME=unquoted=equals', 'unquoted=equals'],
  [`NAME=${'x'.repeat(1000)}`, 'x'.repeat(256)],
])('%j', (text, name) => {
  expect(parseOsRelease(text).name).toBe(name)
})

test.each(['ID="De bian"', 'ID=../..', 'ID="a?b"', 'ID=""'])('%s is no id', text => {
  expect(parseOsRelease(text).id).toBe('linux')
})

test('an id written in capitals is the same', () => {
  expect(parseOsRelease('ID=Debian\n')).toEqual({ id: 'debian', idLike: [], family: 'debian' })
})

test('of this machine', async () => {
  const found = parseOsRelease(await readFile('/etc/os-release', 'utf8'))
  expect(found).toMatchObject({ id: expect.stringMatching(/^[a-z]+$/), family: expect.stringMatching(/^(?!other)/) })
})
