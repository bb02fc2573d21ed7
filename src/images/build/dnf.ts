import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { makeDirectory } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import { localDirectories } from './apt.ts'
import type { PackageCache } from './fetch.ts'
import type { LockedPackage, LockedSet } from './lock.ts'
import { type Overlay, type SandboxOptions, withTool } from './sandbox.ts'
import { wronglySigned } from './trouble.ts'

/** RPM packages, in the same three acts as Debian's (apt.ts): resolve, fetch, install offline from what was locked. */
export interface DnfRepository {
  readonly name: string
  readonly urls: readonly string[]
  /** A key on this machine; nothing means that packages are taken without a signature. */
  readonly key?: string
}

/** Read by rpm in its home directory. */
async function macros(dir: string, database: string): Promise<Record<string, string>> {
  const file = join(dir, 'rpmmacros')
  await writeFile(file, `%_dbpath ${database}\n`)
  return { '/root/.rpmmacros': file }
}

export interface DnfRequest {
  readonly repositories: readonly DnfRepository[]
  readonly release: string
  readonly platform?: string
  /** Where the image keeps its package database: this machine's rpm may have another idea. */
  readonly database: string
  /** As RPM names it: x86_64. */
  readonly arch: string
  readonly packages: readonly string[]
  readonly keep: readonly LockedPackage[]
  /** A directory of ours; metadata is kept there from one time to the next. */
  readonly state: string
}

const Answer = z.union([
  z.object({ missing: z.array(z.string()), names: z.array(z.string()) }),
  z.object({
    packages: z.array(
      z.object({
        name: z.string(),
        version: z.string(),
        arch: z.string(),
        algorithm: z.string(),
        digest: z.string().regex(/^[0-9a-f]+$/),
        size: z.int().min(0),
        repository: z.string(),
        path: z.string().min(1),
      }),
    ),
  }),
])

const RESOLVER = fileURLToPath(new URL('dnf-resolve.py', import.meta.url))

/** `target` is what is installed already: layers, or an empty directory. */
export async function resolveDnf(
  request: DnfRequest,
  target: Overlay | string,
  options: SandboxOptions,
): Promise<Omit<LockedSet, 'request'>> {
  if (request.repositories.length === 0)
    throw new MusterError('RECIPE_INVALID', 'there are no repositories to take packages from', {
      hint: 'name them under repositories:',
    })
  for (const name of ['cache', 'persist', 'log']) await makeDirectory(join(request.state, name))
  const { onOutput: _, ...quiet } = options
  const input = {
    root: '/target',
    release: request.release,
    platform: request.platform,
    arch: request.arch,
    packages: request.packages,
    repositories: Object.fromEntries(request.repositories.map(({ name, urls }) => [name, { urls }])),
    keep: Object.fromEntries(request.keep.map(({ name, version }) => [name, version])),
  }
  const local = await localDirectories(request.repositories.flatMap(({ urls }) => urls))
  const printed = await withTool(target, ['/usr/bin/python3', '/run/muster/dnf-resolve.py'], {
    ...quiet,
    network: true,
    input: JSON.stringify(input),
    readable: {
      '/run/muster/dnf-resolve.py': RESOLVER,
      ...(await macros(request.state, request.database)),
      ...local,
    },
    writable: { '/dnf': request.state },
  }).catch((error: unknown) => {
    throw explain(error)
  })
  const answer = Answer.parse(JSON.parse(printed.stdout.toString('utf8').trim().split('\n').at(-1) ?? ''))
  if ('missing' in answer) {
    const lines = answer.missing.map(name => `${name} is in none of the repositories${didYouMean(name, answer.names)}`)
    throw new MusterError('PACKAGE_UNKNOWN', lines.join('; '))
  }
  const packages = answer.packages.map(({ algorithm, digest, ...item }) => {
    if (algorithm !== 'sha256')
      throw new MusterError(
        'BUILD_FAILED',
        `repository ${item.repository} lists ${item.name} by ${algorithm}, not by sha256`,
      )
    return { ...item, sha256: digest, file: basename(item.path) }
  })
  packages.sort((a, b) => (a.file < b.file ? -1 : 1))
  return {
    repositories: Object.fromEntries(request.repositories.map(({ name, urls }) => [name, { urls: [...urls] }])),
    packages,
  }
}

function explain(error: unknown): unknown {
  if (!(error instanceof MusterError)) return error
  const last = error.details.at(-1) ?? ''
  if (last.startsWith('unreachable: '))
    return new MusterError('MIRROR_UNREACHABLE', 'a package repository cannot be read', {
      details: [last.slice('unreachable: '.length)],
      cause: error,
    })
  if (error.details.some(line => line.startsWith('conflict: ')))
    return new MusterError('BUILD_FAILED', 'the packages cannot be installed together', {
      details: error.details,
      hint: 'take out or replace one of them',
      cause: error,
    })
  return error
}

/** One directory for each repository the packages come from, with exactly the locked ones and the metadata dnf wants. */
export async function writeRpmRepositories(
  dir: string,
  cache: PackageCache,
  set: LockedSet,
  options: SandboxOptions,
): Promise<void> {
  for (const [repository, packages] of Map.groupBy(set.packages, item => item.repository)) {
    const target = join(dir, repository)
    await cache.linkInto(target, packages)
    const argv = ['createrepo_c', '--quiet', '--no-database', '/run/repository']
    await withTool(undefined, argv, { ...options, writable: { '/run/repository': target } })
  }
}

const MAIN = `[main]
plugins=0
keepcache=0
install_weak_deps=0
cachedir=/tmp/dnf
persistdir=/tmp/dnf
logdir=/tmp/dnf
reposdir=/dev/null
`

/** Installs what is locked; every package is held against the key of the repository it comes from, where that has one. */
export async function installRpms(
  target: Overlay | string,
  repositories: string,
  set: LockedSet,
  request: Pick<DnfRequest, 'release' | 'platform' | 'database' | 'arch' | 'repositories'>,
  scratch: string,
  options: SandboxOptions,
): Promise<void> {
  const used = request.repositories.filter(({ name }) => set.packages.some(item => item.repository === name))
  const sections = used.map(({ name, key }) =>
    [
      `[${name}]`,
      `name=${name}`,
      `baseurl=file:///run/repositories/${name}`,
      ...(key === undefined ? ['gpgcheck=0'] : ['gpgcheck=1', `gpgkey=file:///run/keys/${name}.asc`]),
      '',
    ].join('\n'),
  )
  const platform = request.platform === undefined ? '' : `module_platform_id=${request.platform}\n`
  const file = join(scratch, 'dnf.conf')
  await writeFile(file, [`${MAIN}${platform}`, ...sections].join('\n'))
  const keys = used.flatMap(({ name, key }) => (key === undefined ? [] : [[`/run/keys/${name}.asc`, key] as const]))
  const where = ['--installroot=/target', `--releasever=${request.release}`, `--forcearch=${request.arch}`]
  const names = set.packages.map(({ name, version, arch }) => `${name}-${version}.${arch}`)
  await withTool(target, ['dnf', '--config', '/run/dnf.conf', ...where, '--assumeyes', 'install', ...names], {
    ...options,
    live: true,
    readable: {
      '/run/repositories': repositories,
      '/run/dnf.conf': file,
      ...(await macros(scratch, request.database)),
      ...Object.fromEntries(keys),
    },
  }).catch((error: unknown) => {
    throw explainSignature(error, set, used)
  })
}

function explainSignature(error: unknown, set: LockedSet, used: readonly DnfRepository[]): unknown {
  if (!(error instanceof MusterError) || !error.details.some(line => line.includes('GPG check FAILED'))) return error
  const details = error.details.filter(line => /\bkeys?\b|signed|GPG/i.test(line))
  const failing = /Failing package is: (\S+)|Package (\S+)\.rpm is not signed/.exec(details.join('\n'))
  const culprit = failing?.[1] ?? failing?.[2]
  const from = set.packages.find(({ name, version, arch }) => `${name}-${version}.${arch}` === culprit)?.repository
  const named = used.find(({ name, key }) => (from === undefined ? key !== undefined : name === from))
  return wronglySigned(named ?? { name: used.map(({ name }) => name).join(' or ') }, details, error)
}
