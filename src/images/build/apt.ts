import { createHash } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists, makeDirectory } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { didYouMean } from '../../lib/suggest.ts'
import type { LockedPackage, LockedSet } from './lock.ts'
import { type SandboxOptions, withTool } from './sandbox.ts'
import { wronglySigned } from './trouble.ts'

/**
 * Debian packages in three separate acts: resolve (asks the mirrors; gives exact versions and digests), fetch (fetch.ts),
 * install (offline, from a repository that holds exactly what was locked: apt can choose nothing else).
 */
export interface AptSource {
  readonly name: string
  /** The same archive at several places. */
  readonly urls: readonly string[]
  /** '/' for a flat repository. */
  readonly suite: string
  readonly components: readonly string[]
  /** A key or keyring on this machine. */
  readonly key?: string
  readonly trusted?: boolean
}

export const DEBIAN_KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** What this machine's own apt uses for a release: its archive, updates and security. */
export async function hostSources(suite: string, components: readonly string[]): Promise<AptSource[]> {
  const format = '$(REPO_URI)|$(RELEASE)|$(COMPONENT)'
  const { stdout } = await exec('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'])
  const suites = new Set([suite, `${suite}-updates`, `${suite}-security`])
  const targets = [...new Set(stdout.toString('utf8').trim().split('\n'))].map(line => line.split('|'))
  const used = targets.filter(
    ([, release = '', component = '']) => suites.has(release) && components.includes(component),
  )
  const byRelease = Map.groupBy(used, ([url, release]) => `${url}|${release}`)
  return [...byRelease.values()].map(group => {
    const [url = '', release = ''] = group[0] ?? []
    const found = [...new Set(group.map(([, , component = '']) => component))]
    return { name: release, urls: [url], suite: release, components: found, key: DEBIAN_KEYRING }
  })
}

export interface AptRequest {
  readonly sources: readonly AptSource[]
  readonly arch: string
  /** Names, NAME=VERSION, or patterns of apt. */
  readonly packages: readonly string[]
  /** What is installed already: the text of dpkg's status file. */
  readonly status: string
  /** Versions to stay with where the mirrors still have them. */
  readonly keep: readonly LockedPackage[]
  /** A directory of ours; indexes are kept there from one time to the next. */
  readonly state: string
}

export async function resolveApt(request: AptRequest, options: SandboxOptions): Promise<Omit<LockedSet, 'request'>> {
  const tries = Math.max(...request.sources.map(source => source.urls.length))
  let failure: unknown
  for (let at = 0; at < tries; at++) {
    try {
      return await resolveFrom(request, at, options)
    } catch (error) {
      if (!(error instanceof MusterError) || error.code !== 'MIRROR_UNREACHABLE') throw error
      failure = error
    }
  }
  throw failure
}

async function resolveFrom(
  request: AptRequest,
  at: number,
  options: SandboxOptions,
): Promise<Omit<LockedSet, 'request'>> {
  const state = await prepareState(request, at)
  const keys = request.sources.flatMap(source =>
    source.key === undefined ? [] : [[keyPath(source), source.key] as const],
  )
  const local = await localDirectories(request.sources.flatMap(source => source.urls))
  const { onOutput, ...quiet } = options
  const apt = async (args: readonly string[], how: SandboxOptions): Promise<string> => {
    const [command = '', ...rest] = args
    const argv = [command, ...APT_STATE, ...architecture(request.arch), ...rest]
    const places = { readable: { ...Object.fromEntries(keys), ...local }, writable: { '/apt': state } }
    return (await withTool(undefined, argv, { ...how, ...places })).stdout.toString('utf8')
  }
  await apt(['apt-get', 'update', '--error-on=any'], { ...options, network: true }).catch((error: unknown) => {
    throw unreachable(error, request.sources)
  })
  // The answer is wanted as a value: it is not shown as it comes.
  const install = [
    'apt-get',
    'install',
    '--print-uris',
    '-qq',
    '--yes',
    '--no-install-recommends',
    '--',
    ...request.packages,
  ]
  const printed = await apt(install, quiet).catch(async (error: unknown) => {
    throw await unknownPackages(() => apt(['apt-cache', 'pkgnames'], quiet), error)
  })
  onOutput?.(Buffer.from(printed))
  return lockedSet(printed, request.sources, at)
}

const architecture = (arch: string): string[] => ['-o', `APT::Architecture=${arch}`, '-o', `APT::Architectures=${arch}`]

const keyPath = (source: AptSource): string =>
  source.key === DEBIAN_KEYRING ? DEBIAN_KEYRING : `/run/keys/${keyFile(source)}`

/** apt tells armoured keys from binary ones by their name. */
export const keyFile = (source: AptSource): string =>
  `${source.name}${source.key?.endsWith('.gpg') === true ? '.gpg' : '.asc'}`

/** Repositories on this machine are shown to the package manager where they are. */
export async function localDirectories(urls: readonly string[]): Promise<Record<string, string>> {
  const dirs = urls.flatMap(url => (url.startsWith('file://') ? [decodeURI(url.slice('file://'.length))] : []))
  const found = await Promise.all(dirs.map(async dir => ((await exists(dir)) ? [[dir, dir] as const] : [])))
  // One that is not there is for the package manager to complain about.
  return Object.fromEntries(found.flat())
}

const APT_STATE = [
  'Dir::Etc::sourcelist=/dev/null',
  'Dir::Etc::sourceparts=/apt/sources.d',
  'Dir::Etc::preferences=/apt/preferences',
  'Dir::Etc::preferencesparts=/dev/null',
  'Dir::Etc::trusted=/dev/null',
  'Dir::Etc::trustedparts=/dev/null',
  'Dir::State=/apt/state',
  'Dir::State::status=/apt/status',
  'Dir::Cache=/apt/cache',
  'APT::Sandbox::User=root',
  'APT::Install-Recommends=false',
  'Acquire::Languages=none',
  'Acquire::ForceHash=SHA256',
  'Acquire::Retries=2',
  'Acquire::http::Timeout=20',
  'APT::Default-Release=',
].flatMap(setting => ['-o', setting])

async function prepareState(request: AptRequest, at: number): Promise<string> {
  const identity = JSON.stringify([request.sources, at, request.arch])
  const state = join(request.state, createHash('sha256').update(identity).digest('hex').slice(0, 16))
  for (const dir of ['state/lists/partial', 'cache/archives/partial']) await makeDirectory(join(state, dir))
  await rm(join(state, 'sources.d'), { recursive: true, force: true })
  await mkdir(join(state, 'sources.d'))
  for (const source of request.sources)
    await writeFile(join(state, 'sources.d', `${source.name}.sources`), sourceText(source, at))
  await writeFile(join(state, 'status'), request.status)
  const pins = request.keep.map(
    ({ name, arch, version }) =>
      `Package: ${name}:${arch === 'all' ? 'any' : arch}\nPin: version ${version}\nPin-Priority: 1001\n`,
  )
  await writeFile(join(state, 'preferences'), pins.join('\n'))
  return state
}

/** A source in apt's own format; also what an image gets, then with the key where the image has it. */
export function sourceText(
  source: AptSource,
  at = 0,
  key: string | undefined = source.key === undefined ? undefined : keyPath(source),
): string {
  const isFlat = source.suite.endsWith('/')
  return [
    'Types: deb',
    `URIs: ${source.urls[Math.min(at, source.urls.length - 1)]}`,
    `Suites: ${source.suite}`,
    ...(isFlat ? [] : [`Components: ${source.components.join(' ')}`]),
    ...(key === undefined ? [] : [`Signed-By: ${key}`]),
    ...(source.trusted === true ? ['Trusted: yes'] : []),
    '',
  ].join('\n')
}

function unreachable(error: unknown, sources: readonly AptSource[]): unknown {
  if (!(error instanceof MusterError)) return error
  const said = error.details.filter(line => /^[EW]:/.test(line))
  const unsigned = said.filter(line => /NO_PUBKEY|not signed|signatures? (couldn't|could not) be verified/i.test(line))
  if (unsigned.length > 0) {
    const named = sources.find(source => unsigned.some(line => isAbout(line, source)))
    return wronglySigned(named ?? { name: sources.map(({ name }) => name).join(' or ') }, said.slice(0, 5), error)
  }
  return new MusterError('MIRROR_UNREACHABLE', 'a package repository cannot be read', {
    details: (said.length > 0 ? said : error.details).slice(0, 5),
    cause: error,
  })
}

/** E: The repository 'http://mirror.example/debian bookworm InRelease' is not signed. */
function isAbout(line: string, { urls, suite }: AptSource): boolean {
  const [, url = '', release] = /(?:GPG error: |repository ')(\S+) (\S+) /.exec(line) ?? []
  return release === suite && urls.some(one => sameUrl(withSlash(one)) === sameUrl(withSlash(url)))
}

async function unknownPackages(knownNames: () => Promise<string>, error: unknown): Promise<unknown> {
  if (!(error instanceof MusterError)) return error
  const patterns = [
    /Unable to locate package (\S+)/,
    /Package '([^']+)' has no installation candidate/,
    /Version '[^']*' for '([^']+)' was not found/,
  ]
  const unknown = error.details.flatMap(line => patterns.flatMap(pattern => pattern.exec(line)?.[1] ?? []))
  if (unknown.length === 0)
    return new MusterError('BUILD_FAILED', 'the packages cannot be installed together', {
      details: error.details,
      hint: 'take out or replace one of them',
      cause: error,
    })
  const known = (await knownNames().catch(() => '')).split('\n')
  const lines = [...new Set(unknown)].map(name => `${name} is in none of the repositories${didYouMean(name, known)}`)
  return new MusterError('PACKAGE_UNKNOWN', lines.join('; '), { cause: error })
}

/** 'URL' name_version_arch.deb size SHA256:digest */
function lockedSet(text: string, sources: readonly AptSource[], at: number): Omit<LockedSet, 'request'> {
  const addresses = sources.map(source => ({
    name: source.name,
    url: withSlash(source.urls[Math.min(at, source.urls.length - 1)] ?? ''),
  }))
  const lines = [...text.matchAll(/^'([^']+)' (\S+) (\d+) SHA256:([0-9a-f]{64})$/gm)]
  const packages = lines.map(([, url = '', file = '', size, sha256 = '']) => {
    const source = addresses.find(address => sameUrl(url).startsWith(sameUrl(address.url)))
    const [name = '', version = '', arch = ''] = file
      .replace(/\.deb$/, '')
      .split('_')
      .map(decodeURIComponent)
    if (source === undefined || arch === '')
      throw new MusterError('BUILD_FAILED', `apt names a package from nowhere: ${url}`)
    const path = sameUrl(url).slice(sameUrl(source.url).length)
    return { name, version, arch, sha256, size: Number(size), repository: source.name, path, file }
  })
  packages.sort((a, b) => (a.file < b.file ? -1 : 1))
  const repositories = Object.fromEntries(
    sources.map(({ name, urls, suite, components }) => [name, { urls: [...urls], suite, components: [...components] }]),
  )
  return { repositories, packages }
}

const withSlash = (url: string): string => (url.endsWith('/') ? url : `${url}/`)

/** apt writes file:/path for file:///path, and ./ where a repository is flat. */
const sameUrl = (url: string): string => url.replace(/^file:\/+/, 'file:///').replaceAll('/./', '/')
