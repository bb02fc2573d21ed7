import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exec } from '../../lib/exec.ts'
import { removeFromLayer } from './clean.ts'
import type { PackageCache } from './fetch.ts'
import type { LockedSet } from './lock.ts'
import { type Overlay, type SandboxOptions, inRoot, makeMountPoints, withTool } from './sandbox.ts'

/** A flat repository of exactly these packages. */
export async function writeDebRepository(
  dir: string,
  cache: PackageCache,
  set: LockedSet,
  suite: string,
): Promise<void> {
  await cache.linkInto(dir, set.packages)
  const stanzas = await mapLimit(4, set.packages, async ({ sha256, size, file }) => {
    const { stdout } = await exec('dpkg-deb', ['--field', cache.pathOf(sha256)])
    return `${stdout.toString('utf8').trimEnd()}\nFilename: ./${file}\nSize: ${size}\nSHA256: ${sha256}\n`
  })
  const index = stanzas.join('\n')
  await writeFile(join(dir, 'Packages'), index)
  const digest = createHash('sha256').update(index).digest('hex')
  const release = [
    `Suite: ${suite}`,
    `Codename: ${suite}`,
    'SHA256:',
    ` ${digest} ${Buffer.byteLength(index)} Packages`,
    '',
  ]
  await writeFile(join(dir, 'Release'), release.join('\n'))
}

async function mapLimit<Item, Result>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = Array.from({ length: items.length })
  let next = 0
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as Item)
  }
  await Promise.all(Array.from({ length: limit }, worker))
  return results
}

/** INITRD=No: the initramfs is made for the image as a whole, not by a package's script. */
export const DEBIAN_ENV = { DEBIAN_FRONTEND: 'noninteractive', DEBCONF_NONINTERACTIVE_SEEN: 'true', INITRD: 'No' }

/** The first packages of an empty directory. */
export async function bootstrapDebian(
  dir: string,
  repository: string,
  suite: string,
  arch: string,
  options: SandboxOptions,
): Promise<void> {
  const argv = [
    'mmdebstrap',
    '--mode=root',
    '--variant=minbase',
    '--format=directory',
    `--architectures=${arch}`,
    '--include=apt',
  ]
  await makeMountPoints(dir)
  // /dev and /proc are there already, and mounting is not allowed.
  const skip = '--skip=chroot/mount,check/empty,output/dev'
  const quick = ['--dpkgopt=force-unsafe-io', '--aptopt=APT::Install-Recommends "false"']
  await withTool(dir, [...argv, skip, ...quick, suite, '/target', 'deb [trusted=yes] copy:///run/repository ./'], {
    ...options,
    live: true,
    env: { ...options.env, ...DEBIAN_ENV, TMPDIR: '/tmp' },
    readable: { '/run/repository': repository },
  })
  for (const leftover of [
    'etc/apt/apt.conf.d/99mmdebstrap',
    'etc/dpkg/dpkg.cfg.d/99mmdebstrap',
    'etc/hostname',
    'etc/resolv.conf',
  ])
    await removeFromLayer(dir, leftover)
}

/** Installs into a root, with the root's own apt. */
export async function installDebs(
  overlay: Overlay,
  repository: string,
  packages: readonly string[],
  options: SandboxOptions,
): Promise<void> {
  await inRoot(overlay, ['sh', '-euc', INSTALL, 'sh', ...packages], {
    ...options,
    env: { ...options.env, ...DEBIAN_ENV },
    readable: { '/run/muster/repository': repository },
  })
}

const INSTALL = `
policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
  printf '#!/bin/sh\\nexit 101\\n' >$policy
  chmod 755 $policy
  trap 'rm -f $policy' EXIT
fi
mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial
echo 'deb [trusted=yes] file:/run/muster/repository ./' >/tmp/apt/sources.list
apt() {
  apt-get -q -y -o Dir::Etc::sourcelist=/tmp/apt/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=/tmp/apt/lists \\
    -o Dir::Cache=/tmp/apt/cache -o Dir::Log::Terminal= -o Dir::Log::History= -o APT::Sandbox::User=root -o APT::Install-Recommends=false \\
    -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-unsafe-io -o Dpkg::Options::=--force-confold "$@"
}
apt update
apt install --allow-downgrades -- "$@"
`
