/** Package repositories in miniature, with keys that sign them. */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exec } from '../../src/lib/exec.ts'

export interface TinyRpm {
  readonly name: string
  readonly version?: string
  readonly requires?: string
  readonly provides?: string
  readonly conflicts?: string
  /** Lines of shell that fill %{buildroot}. */
  readonly install?: string
  /** What of it belongs to the package. */
  readonly files?: readonly string[]
  /** Lines of shell that run in the root afterwards. */
  readonly post?: string
}

/** A system that fits into two packages: a name and a shell. */
export const TINY_RPMS: readonly TinyRpm[] = [
  {
    name: 'tiny-release',
    install: `mkdir -p %{buildroot}/etc
printf 'ID=tinyrhel\\nID_LIKE="rhel fedora"\\nVERSION_ID=9\\nPRETTY_NAME="Tiny 9"\\n' >%{buildroot}/etc/os-release`,
    files: ['/etc/os-release'],
  },
  {
    name: 'tiny-shell',
    requires: 'tiny-release',
    provides: '/bin/sh',
    install: `mkdir -p %{buildroot}/usr/bin
cp /usr/bin/busybox %{buildroot}/usr/bin/busybox
for a in sh ls cat mkdir cp chmod ln echo; do ln -s busybox %{buildroot}/usr/bin/$a; done
ln -s usr/bin %{buildroot}/bin`,
    files: ['/usr/bin/*', '/bin'],
    post: 'echo configured >/etc/tiny-shell.conf',
  },
]

/** A package that brings one file, /opt/NAME, with its version in it. */
export const filePackage = (name: string, version = '1', more: Partial<TinyRpm> = {}): TinyRpm => ({
  name,
  version,
  install: `mkdir -p %{buildroot}/opt\necho ${version} >%{buildroot}/opt/${name}`,
  files: [`/opt/${name}`],
  ...more,
})

const PREAMBLE = `%define debug_package %{nil}
%define __os_install_post %{nil}
%define _build_id_links none`

function specOf({
  name,
  version = '1',
  requires,
  provides,
  conflicts,
  install = '',
  files = [],
  post,
}: TinyRpm): string {
  return [
    PREAMBLE,
    `Name: ${name}\nVersion: ${version}\nRelease: 1\nSummary: ${name}\nLicense: MIT\nAutoReqProv: no`,
    ...(requires === undefined ? [] : [`Requires: ${requires}`]),
    ...(provides === undefined ? [] : [`Provides: ${provides}`]),
    ...(conflicts === undefined ? [] : [`Conflicts: ${conflicts}`]),
    `%description\n${name}\n%install\nmkdir -p %{buildroot}\n${install}`,
    ...(post === undefined ? [] : ['%post -p /usr/bin/sh', post]),
    '%files',
    ...files,
    '',
  ].join('\n')
}

/** Builds packages into a directory and lists them there as a repository; what is there already stays. */
export async function rpmRepository(dir: string, packages: readonly TinyRpm[], key?: SigningKey): Promise<string> {
  const work = `${dir}.build`
  await mkdir(join(work, 'SPECS'), { recursive: true })
  await mkdir(dir, { recursive: true })
  const specs: string[] = []
  for (const one of packages) {
    const file = join(work, 'SPECS', `${one.name}-${one.version ?? '1'}.spec`)
    await writeFile(file, specOf(one))
    specs.push(file)
  }
  const name = '%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm'
  const defines = { _topdir: work, _rpmdir: dir, _rpmfilename: name, _binary_payload: 'w1.gzdio' }
  const flags = Object.entries(defines).flatMap(([macro, value]) => ['--define', `${macro} ${value}`])
  await exec('rpmbuild', ['--quiet', '-bb', ...flags, ...specs])
  if (key !== undefined) await key.sign(dir)
  await listPackages(dir)
  return dir
}

/** Writes the metadata of a repository anew. */
export const listPackages = (dir: string): Promise<unknown> => exec('createrepo_c', ['--quiet', '--no-database', dir])

export interface SigningKey extends AsyncDisposable {
  /** The public half, armoured. */
  readonly text: string
  /** Signs every package of a directory. */
  sign(dir: string): Promise<void>
}

/** A key of its own in a directory of its own. */
export async function signingKey(home: string, who: string): Promise<SigningKey> {
  await mkdir(home, { mode: 0o700 })
  const gpg = (...args: string[]) => exec('gpg', ['--homedir', home, '--batch', '--quiet', '--passphrase', '', ...args])
  await gpg('--quick-generate-key', `${who} <${who}@example.org>`, 'ed25519', 'sign', 'never')
  const text = (await gpg('--armor', '--export', who)).stdout.toString('utf8')
  return {
    text,
    async sign(dir) {
      const names = (await readdir(dir)).filter(name => name.endsWith('.rpm'))
      const macros = ['--define', '__gpg /usr/bin/gpg', '--define', `_gpg_name ${who}`]
      const files = names.map(name => join(dir, name))
      await exec('rpmsign', ['--addsign', ...macros, ...files], { env: { GNUPGHOME: home } })
    },
    // gpg has started an agent of its own.
    [Symbol.asyncDispose]: async () => void (await exec('gpgconf', ['--homedir', home, '--kill', 'all'])),
  }
}
