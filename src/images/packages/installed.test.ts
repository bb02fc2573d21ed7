import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { type Files, failureOf, temporaryDir, writeFiles } from '../../site/testing.ts'
import type { Overlay } from '../build/sandbox.ts'
import { type StackedLayer, mergeLayers } from '../layers/merge.ts'
import { scanLayer } from '../layers/scan.ts'
import { installedPackages } from './installed.ts'

type Fill = Files | ((root: string) => Promise<unknown>)

/** What is installed in a tree of these layers, as name, version and manager. */
async function installed(...fills: Fill[]): Promise<string[]> {
  const dir = await temporaryDir()
  const layers: StackedLayer[] = []
  for (const [at, fill] of fills.entries()) {
    const root = join(dir, 'layers', String(at), 'root')
    await mkdir(root, { recursive: true })
    await (typeof fill === 'function' ? fill(root) : writeFiles(root, fill))
    layers.push({ root, ...(await scanLayer(root, 4_000_000_000)) })
  }
  const [mountPoint, upper, work] = ['root', 'upper', 'work'].map(name => join(dir, name)) as [string, string, string]
  for (const path of [mountPoint, upper, work]) await mkdir(path)
  const overlay: Overlay = { layers: layers.map(({ root }) => root), upper, work, mountPoint }
  const found = await installedPackages(mergeLayers(layers), overlay)
  return found.map(({ name, version, arch, manager }) => `${name} ${version} ${arch} ${manager}`)
}

const dpkg = (name: string, version: string, status = 'install ok installed'): string =>
  `Package: ${name}\nStatus: ${status}\nVersion: ${version}\nArchitecture: amd64\nInstalled-Size: 4\n\n`

test('a tree made without a package manager has none', async () => {
  expect(await installed({ 'etc/motd': 'x' })).toEqual([])
})

describe('dpkg', () => {
  test('the database of the tree, as its uppermost layer has it', async () => {
    expect(
      await installed(
        { 'var/lib/dpkg/status': dpkg('bash', '5.1') + dpkg('gone', '1') },
        {
          'var/lib/dpkg/status':
            dpkg('zsh', '5.9') + dpkg('bash', '5.2') + dpkg('old', '1', 'deinstall ok config-files'),
        },
      ),
    ).toEqual(['bash 5.2 amd64 dpkg', 'zsh 5.9 amd64 dpkg'])
  })

  test('a file per package, as images without a shell have it', async () => {
    expect(
      await installed({
        'var/lib/dpkg/status.d/base': 'Package: base-files\nVersion: 12.4\nArchitecture: amd64\n',
        'var/lib/dpkg/status.d/base.md5sums': dpkg('no-package', '1'),
        'var/lib/dpkg/status.d/tzdata': 'Package: tzdata\nVersion: 2024a\nArchitecture: all\n',
      }),
    ).toEqual(['base-files 12.4 amd64 dpkg', 'tzdata 2024a all dpkg'])
  })

  test('both of them, each package once', async () => {
    expect(
      await installed({
        'var/lib/dpkg/status': dpkg('bash', '5.2'),
        'var/lib/dpkg/status.d/bash': dpkg('bash', '5.2'),
        'var/lib/dpkg/status.d/libc6': dpkg('libc6', '2.36'),
      }),
    ).toEqual(['bash 5.2 amd64 dpkg', 'libc6 2.36 amd64 dpkg'])
  })

  test('a database that is damaged is not taken for a short one', async () => {
    expect(
      await failureOf(() =>
        installed({
          'var/lib/dpkg/status': 'Package: a b\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n',
        }),
      ),
    ).toMatch(/^BUILD_FAILED: the root's dpkg database cannot be read: /)
  })
})

test('apk', async () => {
  expect(
    await installed({
      'lib/apk/db/installed': 'P:musl\nV:1.2.4-r2\nA:x86_64\nI:622592\n\nP:zlib\nV:1.3-r0\nA:x86_64\n\n',
    }),
  ).toEqual(['musl 1.2.4-r2 x86_64 apk', 'zlib 1.3-r0 x86_64 apk'])
})

/** A package of no files, in a database of its own. */
const withRpm =
  (dbpath: string, ...names: string[]) =>
  async (root: string): Promise<void> => {
    const dir = await temporaryDir()
    for (const name of names) {
      const spec = `Name: ${name}\nVersion: 1.0\nRelease: 2\nSummary: x\nLicense: MIT\nBuildArch: noarch\n%description\nx\n%files\n`
      await writeFile(join(dir, `${name}.spec`), spec)
      await exec('rpmbuild', [
        '-bb',
        '--quiet',
        '--define',
        `_topdir ${dir}`,
        '--define',
        `_rpmdir ${dir}/rpms`,
        join(dir, `${name}.spec`),
      ])
    }
    const rpms = (await readdir(join(dir, 'rpms/noarch'))).map(name => join(dir, 'rpms/noarch', name))
    await exec('rpm', ['--root', root, '--dbpath', dbpath, '--install', '--nodeps', '--nosignature', ...rpms])
  }

describe('rpm', () => {
  test.each(['/var/lib/rpm', '/usr/lib/sysimage/rpm'])('a database in %s, also from a layer below', async dbpath => {
    expect(await installed(withRpm(dbpath, 'tiny-shell', 'tiny-release'), { 'etc/motd': '' })).toEqual([
      'tiny-release 1.0-2 noarch rpm',
      'tiny-shell 1.0-2 noarch rpm',
    ])
  })

  test('a database that is damaged', async () => {
    const damaged: Files = {
      'var/lib/rpm/rpmdb.sqlite': 'not a database, but long enough to be looked at\n'.repeat(50),
    }
    expect(await failureOf(() => installed(damaged))).toMatch(/^EXEC_FAILED: rpm --root=\/target /)
  })
})
