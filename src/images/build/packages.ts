import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import type { Mutex } from '../../lib/mutex.ts'
import { type StackedLayer, mergeLayers } from '../layers/merge.ts'
import { type OsFamily } from '../packages/os-release.ts'
import { bootstrapDebian, installDebs, writeDebRepository } from './apt-install.ts'
import { type AptSource, DEBIAN_KEYRING, keyFile, resolveApt, sourceText } from './apt.ts'
import { placeInLayer, removeFromLayer } from './clean.ts'
import { type DnfRepository, installRpms, resolveDnf, writeRpmRepositories } from './dnf.ts'
import type { PackageCache } from './fetch.ts'
import { digestOf, digestOfFiles } from './inputs.ts'
import type { LockedPackage, LockedSet } from './lock.ts'
import { type SandboxOptions, makeMountPoints } from './sandbox.ts'
import type { Stage, StageWork } from './stage.ts'

/** Where a root's packages come from: what its base said, and what the recipes on top of it added. */
export type Packaging =
  | { readonly kind: 'apt'; readonly family: OsFamily; readonly sources: readonly AptSource[] }
  | {
      readonly kind: 'dnf'
      readonly family: OsFamily
      readonly release: string
      readonly platform?: string
      /** Where the distribution keeps its package database. */
      readonly database: string
      readonly repositories: readonly DnfRepository[]
    }

export interface PackageTools {
  readonly cache: PackageCache
  /** Directory for indexes that are kept. */
  readonly state: string
  /** An empty directory of this build's. */
  readonly scratch: () => Promise<string>
  readonly sandbox: SandboxOptions
  readonly note: (line: string) => void
  /** Package managers that work versions out share that directory: one at a time. */
  readonly turns: Mutex
}

const rpmRequest = (
  { release, platform, database, repositories }: Extract<Packaging, { kind: 'dnf' }>,
  arch: string,
) => ({
  release,
  database,
  repositories,
  arch: RPM_ARCH[arch] ?? arch,
  ...(platform !== undefined && { platform }),
})

const RPM_ARCH: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64' }

/** What decides which packages a request gives, besides the mirrors' state of the day. Addresses may change; keys may not. */
export async function requestOf(packaging: Packaging, arch: string, packages: readonly string[]): Promise<string> {
  const sources = packaging.kind === 'apt' ? packaging.sources : packaging.repositories
  const keys = await Promise.all(
    sources.map(async ({ key }) => (key === undefined || key === DEBIAN_KEYRING ? key : digestOfFiles(key))),
  )
  const plain =
    packaging.kind === 'apt'
      ? packaging.sources.map(({ suite, components }) => ({ suite, components }))
      : {
          release: packaging.release,
          platform: packaging.platform,
          database: packaging.database,
          names: packaging.repositories.map(({ name }) => name),
        }
  return digestOf({ kind: packaging.kind, arch, packages: [...packages].sort(), keys, plain })
}

/** Exact versions for these packages on top of these layers. */
export function resolvePackages(
  packaging: Packaging,
  arch: string,
  packages: readonly string[],
  keep: readonly LockedPackage[],
  lower: readonly StackedLayer[],
  tools: PackageTools,
): Promise<Omit<LockedSet, 'request'>> {
  tools.note('resolving packages')
  return tools.turns.run(() => resolveNow(packaging, arch, packages, keep, lower, tools))
}

async function resolveNow(
  packaging: Packaging,
  arch: string,
  packages: readonly string[],
  keep: readonly LockedPackage[],
  lower: readonly StackedLayer[],
  tools: PackageTools,
): Promise<Omit<LockedSet, 'request'>> {
  tools.sandbox.signal?.throwIfAborted()
  if (packaging.kind === 'apt') {
    const status = await textIn(lower, 'var/lib/dpkg/status')
    return resolveApt(
      { sources: packaging.sources, arch, packages, status, keep, state: join(tools.state, 'apt') },
      tools.sandbox,
    )
  }
  const scratch = await tools.scratch()
  const [upper, work, mountPoint] = ['upper', 'work', 'root'].map(name => join(scratch, name)) as [
    string,
    string,
    string,
  ]
  for (const dir of [upper, work, mountPoint]) await mkdir(dir)
  const target = lower.length === 0 ? mountPoint : { layers: lower.map(layer => layer.root), upper, work, mountPoint }
  const request = { ...rpmRequest(packaging, arch), packages, keep, state: join(tools.state, 'dnf') }
  return resolveDnf(request, target, tools.sandbox)
}

async function textIn(layers: readonly StackedLayer[], path: string): Promise<string> {
  const tree = mergeLayers(layers)
  const entry = tree.get(path)
  return entry?.type === 'file' ? readFile(tree.locate(entry), 'utf8') : ''
}

/** Brings the packages of a lock into the cache. */
export async function fetchPackages(set: LockedSet, tools: PackageTools): Promise<void> {
  const wanted = set.packages.map(({ name, version, sha256, repository, path }) => ({
    name: `${name} ${version}`,
    sha256,
    urls: (set.repositories[repository]?.urls ?? []).map(url => `${url.replace(/\/+$/, '')}/${path}`),
  }))
  await tools.cache.fetch(wanted, tools.note, tools.sandbox.signal)
}

/** The first stage of a Debian image: its essential packages and apt. */
export function debianStage(
  suite: string,
  arch: string,
  sources: readonly AptSource[],
  set: LockedSet,
  tools: PackageTools,
): Stage {
  return {
    title: `debian ${suite}`,
    inputs: { debian: suite, arch, packages: identityOf(set), sources: sources.map(source => sourceText(source)) },
    async make(work) {
      await fetchPackages(set, tools)
      const repository = join(work.scratch, 'repository')
      await writeDebRepository(repository, tools.cache, set, suite)
      await bootstrapDebian(work.upper, repository, suite, arch, work.sandbox)
      await removeFromLayer(work.upper, 'etc/apt/sources.list')
      await writeSources(work, sources)
    },
  }
}

/** The packages a recipe asks for. */
export function packagesStage(
  packaging: Packaging,
  arch: string,
  packages: readonly string[],
  set: LockedSet,
  added: readonly (AptSource | DnfRepository)[],
  tools: PackageTools,
): Stage {
  const place = packaging.kind === 'dnf' ? packaging.database : undefined
  const inputs = {
    packages: identityOf(set),
    names: packages,
    kind: packaging.kind,
    place,
    added: added.map(({ name, urls }) => ({ name, urls })),
  }
  return {
    title: 'packages',
    inputs,
    async make(work) {
      await fetchPackages(set, tools)
      const repository = join(work.scratch, 'repository')
      if (packaging.kind === 'apt') {
        await writeDebRepository(repository, tools.cache, set, 'muster')
        await installDebs(work.overlay, repository, packages, work.sandbox)
        await writeSources(work, added as readonly AptSource[])
        return
      }
      await writeRpmRepositories(repository, tools.cache, set, work.sandbox)
      const target = work.lower.length === 0 ? work.upper : work.overlay
      if (work.lower.length === 0) await makeMountPoints(work.upper)
      await installRpms(target, repository, set, rpmRequest(packaging, arch), work.scratch, work.sandbox)
    },
  }
}

const identityOf = (set: LockedSet): string => digestOf(set.packages.map(({ sha256 }) => sha256))

/** What apt in the image will use later, on a node or in a container. */
async function writeSources(work: StageWork, sources: readonly AptSource[]): Promise<void> {
  for (const source of sources) {
    let key: string | undefined
    if (source.key === DEBIAN_KEYRING) key = DEBIAN_KEYRING
    else if (source.key !== undefined) {
      const path = `etc/apt/keyrings/${keyFile(source)}`
      await placeInLayer(work.upper, path, await readFile(source.key), work.tree)
      key = `/${path}`
    }
    await placeInLayer(
      work.upper,
      `etc/apt/sources.list.d/${source.name}.sources`,
      sourceText(source, 0, key),
      work.tree,
    )
  }
}

export function noPackaging(image: string): MusterError {
  return new MusterError(
    'RECIPE_INVALID',
    `${image}: packages: its base has neither apt nor rpm, so none can be installed`,
    {
      hint: 'install what is needed in a run step with network: true',
    },
  )
}
