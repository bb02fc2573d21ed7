import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { failureOf, temporaryDir } from '../../site/testing.ts'
import { RPM_QUERY_FORMAT, parseRpmQuery } from './rpm.ts'

const record = (...fields: string[]): string => `${fields.join('\x1f')}\x1e`

test('packages by name; keys are none', () => {
  const text = [
    record('vim-minimal', '2:8.2.2637-20.el9_1', 'x86_64', '1607776', 'vim-8.2.2637-20.el9_1.src.rpm', 'Vim and MIT'),
    record('gpg-pubkey', '350d275d-6279464b', '(none)', '0', '(none)', 'pubkey'),
    record('bash', '5.1.8-6.el9_1', 'x86_64', '7738778', 'bash-5.1.8-6.el9_1.src.rpm', 'GPLv3+'),
    record('kernel-core', '5.14.0-70.el9', 'x86_64', '5000000000', 'kernel-5.14.0-70.el9.src.rpm', 'GPLv2'),
    record('kernel-core', '5.14.0-162.el9', 'x86_64', '5000000001', 'kernel-5.14.0-162.el9.nosrc.rpm', 'GPLv2'),
    record('local', '1-1', 'noarch', '(none)', '(none)', '(none)'),
  ].join('')
  expect(parseRpmQuery(text)).toEqual([
    {
      name: 'bash',
      version: '5.1.8-6.el9_1',
      arch: 'x86_64',
      manager: 'rpm',
      source: 'bash',
      licence: 'GPLv3+',
      size: 7_738_778,
    },
    {
      name: 'kernel-core',
      version: '5.14.0-162.el9',
      arch: 'x86_64',
      manager: 'rpm',
      source: 'kernel',
      licence: 'GPLv2',
      size: 5_000_000_001,
    },
    {
      name: 'kernel-core',
      version: '5.14.0-70.el9',
      arch: 'x86_64',
      manager: 'rpm',
      source: 'kernel',
      licence: 'GPLv2',
      size: 5_000_000_000,
    },
    { name: 'local', version: '1-1', arch: 'noarch', manager: 'rpm', size: 0 },
    {
      name: 'vim-minimal',
      version: '2:8.2.2637-20.el9_1',
      arch: 'x86_64',
      manager: 'rpm',
      source: 'vim',
      licence: 'Vim and MIT',
      size: 1_607_776,
    },
  ])
})

test('nothing installed', () => {
  expect(parseRpmQuery('')).toEqual([])
  expect(parseRpmQuery('\n')).toEqual([])
})

test('what is not of this form is refused', async () => {
  expect(await failureOf(() => parseRpmQuery('bash-5.1.8-6.el9.x86_64\n'))).toBe(
    "BUILD_FAILED: the root's rpm database cannot be read: nothing is not a version of bash-5.1.8-6.el9.x86_64",
  )
})

const spec = (name: string, epoch: string): string => `Name: ${name}
${epoch}Version: 1.0~rc1
Release: 2^git7
Summary: none
License: MIT AND (GPL-2.0-or-later OR zlib)
BuildArch: noarch
%description
none
%install
mkdir -p %{buildroot}/usr/share
printf 12345 >%{buildroot}/usr/share/${name}
%files
/usr/share/${name}
`

test('what rpm itself prints for this format', async () => {
  const dir = await temporaryDir()
  for (const [name, epoch] of [
    ['muster-one', ''],
    ['muster-two', 'Epoch: 3\n'],
  ] as const) {
    await writeFile(join(dir, `${name}.spec`), spec(name, epoch))
    await exec('rpmbuild', ['-bb', '--quiet', '-D', `_topdir ${dir}`, join(dir, `${name}.spec`)])
  }
  const files = ['muster-one', 'muster-two'].map(name => join(dir, 'RPMS/noarch', `${name}-1.0~rc1-2^git7.noarch.rpm`))
  const database = ['--dbpath', join(dir, 'db')]
  // Into the database alone: nothing is put into this machine.
  await exec('rpm', [...database, '--install', '--justdb', '--nodeps', '--noscripts', ...files])
  const { stdout } = await exec('rpm', [...database, '-qa', '--queryformat', RPM_QUERY_FORMAT])
  const same = {
    arch: 'noarch',
    manager: 'rpm',
    licence: 'MIT AND (GPL-2.0-or-later OR zlib)',
    size: 5,
  }
  expect(parseRpmQuery(stdout.toString('utf8'))).toEqual([
    { name: 'muster-one', version: '1.0~rc1-2^git7', source: 'muster-one', ...same },
    { name: 'muster-two', version: '3:1.0~rc1-2^git7', source: 'muster-two', ...same },
  ])
})
