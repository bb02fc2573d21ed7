import { createHash, randomUUID } from 'node:crypto'
import { mkdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { type ExecOptions, exec } from '../../lib/exec.ts'
import { git } from '../../site/git.ts'

/** A git repository with modules, as site.yaml names it: pinned to a commit, so that an image can be built again. */
export interface ModuleSource {
  readonly name: string
  readonly git: string
  /** All 40 digits of it. */
  readonly commit: string
  /** The folder in it that holds the modules; its top unless said. */
  readonly path?: string
}

const COMMIT = /^[0-9a-f]{40}$/
const INSIDE = /^(?!\/)(?!.*(^|\/)\.\.?(\/|$))[^\0]+$/
const TEN_MINUTES = 600_000

/**
 * The folder with the modules of a source, fetched if need be. What was fetched once needs no network again:
 *
 *     cacheDir/git/DIGEST.git     all that was fetched from one address
 *     cacheDir/trees/COMMIT/      the files of one commit, complete or not there
 */
export async function fetchModuleSource(source: ModuleSource, cacheDir: string): Promise<string> {
  if (!COMMIT.test(source.commit)) throw failure(source, `${source.commit} is not a whole commit id (40 hex digits)`)
  if (source.path !== undefined && !INSIDE.test(source.path))
    throw failure(source, `${source.path} is not a path inside the repository`)
  const tree = resolve(cacheDir, 'trees', source.commit)
  if (!(await isDirectory(tree))) {
    const repository = await openCache(source, cacheDir)
    if (!(await hasCommit(repository, source.commit))) await fetchCommit(source, repository)
    await exportCommit(source, repository, tree)
  }
  return folderIn(source, tree)
}

/** The same folder if it was fetched before; nobody is asked for it. */
export async function fetchedModuleSource(source: ModuleSource, cacheDir: string): Promise<string | undefined> {
  const tree = resolve(cacheDir, 'trees', source.commit)
  return (await isDirectory(tree)) ? folderIn(source, tree) : undefined
}

/** A bare repository without hooks, made elsewhere and moved here: another process may be doing the same. */
async function openCache(source: ModuleSource, cacheDir: string): Promise<string> {
  const id = createHash('sha256').update(withoutCredentials(source.git)).digest('hex').slice(0, 32)
  const repository = resolve(cacheDir, 'git', `${id}.git`)
  if (await isDirectory(repository)) return repository
  await inPlace(repository, async dir => {
    await inCache(dir, ['init', '--bare', '--quiet', '--template=', '--object-format=sha1'])
    await mkdir(join(dir, 'info'), { recursive: true })
    await writeFile(join(dir, 'info', 'attributes'), ATTRIBUTES)
  })
  return repository
}

/** What comes out is what was committed: no line ends turned, nothing filled in, nothing left out. */
const ATTRIBUTES = '* -text -ident -export-subst -export-ignore !filter !working-tree-encoding\n'

/** Where a git of ours must not look: at the repository of whoever calls us, at hooks, at protocols that run programs. */
const inCache = (repository: string, args: readonly string[], options: ExecOptions = {}): Promise<Buffer> =>
  git(repository, ['--git-dir=.', '-c', 'core.hooksPath=/dev/null', ...args], {
    ...options,
    env: { GIT_ALLOW_PROTOCOL: 'https:ssh:git:file' },
  })

async function hasCommit(repository: string, commit: string): Promise<boolean> {
  try {
    await inCache(repository, ['cat-file', '-e', `${commit}^{commit}`])
    return true
  } catch {
    return false
  }
}

async function fetchCommit(source: ModuleSource, repository: string): Promise<void> {
  const fetch = (options: readonly string[], refs: readonly string[]): Promise<Buffer> =>
    inCache(repository, ['fetch', ...FETCH_OPTIONS, ...options, '--', source.git, ...refs], { timeout: TEN_MINUTES })
  try {
    await fetch([], [`+${source.commit}:refs/muster/${source.commit}`]).catch((error: unknown) => {
      if (!(error instanceof MusterError) || !error.details.some(line => NOT_BY_COMMIT.test(line))) throw error
      return fetch(['--prune'], ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'])
    })
  } catch (error) {
    // Another process may have been in the way by fetching the very same.
    if (!(await hasCommit(repository, source.commit))) throw failure(source, 'cannot be fetched', error)
  }
  if (!(await hasCommit(repository, source.commit))) throw failure(source, `has no commit ${source.commit}`)
}

const FETCH_OPTIONS = [
  '--quiet',
  '--no-tags',
  '--no-recurse-submodules',
  '--no-write-fetch-head',
  '--no-auto-maintenance',
]

/** Some servers only give what a branch or a tag names; then all of them are fetched, and the commit with them. */
const NOT_BY_COMMIT = /unadvertised object|not our ref|find remote ref/i

async function exportCommit(source: ModuleSource, repository: string, tree: string): Promise<void> {
  try {
    await inPlace(tree, async dir => {
      const archive = `${dir}.tar`
      try {
        const args = ['-c', 'tar.umask=0022', 'archive', '--format=tar', `--output=${archive}`, source.commit]
        await inCache(repository, args, { timeout: TEN_MINUTES })
        await exec('tar', ['-xf', archive, '-C', dir, '--no-same-owner'], { timeout: TEN_MINUTES })
      } finally {
        await rm(archive, { force: true })
      }
    })
  } catch (error) {
    throw failure(source, 'cannot be unpacked', error)
  }
}

/** Makes a directory that is either complete or not there. When somebody else was faster, theirs is as good. */
async function inPlace(target: string, fill: (dir: string) => Promise<void>): Promise<void> {
  const dir = `${target}.${randomUUID()}.tmp`
  await mkdir(dir, { recursive: true })
  try {
    await fill(dir)
    await rename(dir, target).catch(async (error: unknown) => {
      if (!(await isDirectory(target))) throw error
    })
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function folderIn(source: ModuleSource, tree: string): Promise<string> {
  if (source.path === undefined) return tree
  const top = await realpath(tree)
  const folder = await realpath(join(tree, source.path)).catch(() => undefined)
  if (folder === undefined || !`${folder}${sep}`.startsWith(top + sep) || !(await isDirectory(folder)))
    throw failure(source, `has no folder ${source.path} in commit ${source.commit}`)
  return folder
}

/** https://user:token@host/x.git?key=y → https://host/x.git: addresses are printed, logged and hashed. */
export const withoutCredentials = (address: string): string =>
  secretsOf(address).reduce((text, secret) => text.replace(secret, ''), address)

/** Who logs in, and what stands behind a question mark; of ssh only a password: the user is part of the address. */
function secretsOf(address: string): string[] {
  const [, scheme = '', user = '', query = ''] = /^(https?|ssh|git):\/\/([^/]*@)?[^?#]*([?#].*)?$/is.exec(address) ?? []
  const login = scheme.toLowerCase() === 'ssh' ? (/:.*(?=@)/s.exec(user)?.[0] ?? '') : user
  return [login, query].filter(secret => secret !== '')
}

/** Without the command as its cause: the address in it may hold a password. */
function failure(source: ModuleSource, why: string, error?: unknown): MusterError {
  const hide = (text: string): string =>
    secretsOf(source.git).reduce((clean, secret) => clean.replaceAll(secret, ''), text)
  return new MusterError('MODULE_SOURCE', `source ${source.name}: ${withoutCredentials(source.git)} ${why}`, {
    details: reasonsOf(error).map(hide),
  })
}

/** What git said; when it said nothing, how it ended, which stands behind the command. */
function reasonsOf(error: unknown): readonly string[] {
  if (error === undefined) return []
  if (error instanceof MusterError && error.details.length > 0) return error.details
  return [messageOf(error).split(': ').at(-1) ?? '']
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    info => info.isDirectory(),
    () => false,
  )
