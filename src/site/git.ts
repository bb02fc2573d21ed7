import { realpath, rm } from 'node:fs/promises'
import { posix } from 'node:path'
import { MusterError, messageOf } from '../lib/errors.ts'
import { exec, type ExecOptions } from '../lib/exec.ts'
import { type SiteSource, type SourceFile, LEADS_OUT, MAX_YAML_BYTES, belongsToSite } from './source.ts'

/** The git repository a site lives in; the site may be a folder of a larger repository. */
export interface Repository {
  readonly dir: string
  /** Folder of the site inside the repository, '' or 'path/to/site/'. */
  readonly prefix: string
}

export interface Commit {
  readonly id: string
  readonly author: string
  readonly email: string
  readonly time: string
  readonly subject: string
}

export interface Author {
  readonly name: string
  readonly email: string
}

// Never asks, never pages, never runs a background job that outlives the command.
const QUIET = { GIT_TERMINAL_PROMPT: '0', GIT_PAGER: 'cat', GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C.UTF-8' }

async function git(dir: string, args: readonly string[], options: ExecOptions = {}): Promise<Buffer> {
  const all = ['-C', dir, '-c', 'gc.auto=0', '-c', 'core.quotePath=false', ...args]
  return (await exec('git', all, { ...options, env: { ...QUIET, ...options.env } })).stdout
}

const line = async (dir: string, args: readonly string[], options?: ExecOptions): Promise<string> =>
  (await git(dir, args, options)).toString('utf8').trimEnd()

export async function openRepository(siteDir: string): Promise<Repository> {
  try {
    const [top = '', prefix = ''] = (await line(siteDir, ['rev-parse', '--show-toplevel', '--show-prefix'])).split('\n')
    return { dir: await realpath(top), prefix }
  } catch (error) {
    const why = messageOf(error).includes('not installed')
      ? 'git is not installed'
      : `${siteDir} is not in a git repository`
    const dubious = error instanceof MusterError && error.details.some(text => text.includes('dubious ownership'))
    throw new MusterError('SITE_NOT_GIT', dubious ? `git refuses ${siteDir}: it belongs to another user` : why, {
      cause: error,
      ...(dubious && { hint: `git config --global --add safe.directory ${siteDir}` }),
    })
  }
}

/** `git init` where there is no repository yet. */
export async function initRepository(dir: string): Promise<void> {
  await git(dir, ['init', '--quiet', '--initial-branch=main'])
}

/** The commit a revision names, or undefined when there is none such. */
export async function resolveCommit(repo: Repository, revision: string): Promise<string | undefined> {
  try {
    return await line(repo.dir, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`])
  } catch {
    return undefined
  }
}

export async function headCommit(repo: Repository): Promise<string> {
  const head = await resolveCommit(repo, 'HEAD')
  if (head === undefined)
    throw new MusterError('SITE_NOT_GIT', 'the repository has no commit yet', {
      hint: 'git add . && git commit -m "first"',
    })
  return head
}

/** Paths of the site that differ from the last commit, new files included. */
export async function dirtyPaths(repo: Repository): Promise<string[]> {
  const status = await line(repo.dir, [
    'status',
    '--porcelain',
    '-z',
    '--untracked-files=all',
    '--',
    repo.prefix || '.',
  ])
  return status
    .split('\0')
    .filter(entry => entry !== '')
    .map(entry => entry.slice(3).replace(repo.prefix, ''))
}

/**
 * The site's files as they stand, committed or not, as a tree in git: so that what was applied can always be read again.
 * Uses an index of its own: nobody's staged changes are touched.
 */
export async function snapshotTree(repo: Repository): Promise<string> {
  const index = `${await line(repo.dir, ['rev-parse', '--absolute-git-dir'])}/muster-index.${process.pid}`
  const env = { GIT_INDEX_FILE: index }
  try {
    await git(repo.dir, ['read-tree', 'HEAD'], { env })
    await git(repo.dir, ['add', '--all', '--', repo.prefix || '.'], { env })
    return await line(repo.dir, ['write-tree'], { env })
  } finally {
    await rm(index, { force: true })
  }
}

export const treeOf = (repo: Repository, commit: string): Promise<string> =>
  line(repo.dir, ['rev-parse', '--verify', `${commit}^{tree}`])

/** Keeps a tree or commit from being garbage-collected, under a name of ours. */
export async function keep(repo: Repository, name: string, object: string): Promise<void> {
  await git(repo.dir, ['update-ref', `refs/muster/${name}`, object])
}

/** Records the named files as they stand, and nothing else; the commit that came of it. */
export async function commitPaths(
  repo: Repository,
  paths: readonly string[],
  message: string,
  author?: Author,
): Promise<string> {
  const full = paths.map(path => `:(literal)${repo.prefix}${path}`)
  const env = await identity(repo, author)
  await git(repo.dir, ['add', '--all', '--', ...full], { env })
  await git(repo.dir, ['commit', '--quiet', '--no-verify', '--only', '--message', message, '--', ...full], { env })
  return headCommit(repo)
}

/** The author of a commit; git's own setting counts unless somebody is named, and its lack is no reason to fail. */
async function identity(repo: Repository, author: Author | undefined): Promise<Record<string, string>> {
  const configured = await exec('git', ['-C', repo.dir, 'config', 'user.email'], { allow: [1] })
  const fallback = { name: 'muster', email: 'muster@localhost' }
  const who = author ?? (configured.exitCode === 0 ? undefined : fallback)
  const committer = configured.exitCode === 0 ? undefined : fallback
  return {
    ...(who && { GIT_AUTHOR_NAME: who.name, GIT_AUTHOR_EMAIL: who.email }),
    ...(committer && { GIT_COMMITTER_NAME: committer.name, GIT_COMMITTER_EMAIL: committer.email }),
  }
}

/** Makes the site's files what they were in a tree, and leaves the rest of the repository alone; the paths that changed. */
export async function checkoutTree(repo: Repository, tree: string): Promise<string[]> {
  const before = await headCommit(repo)
  const scope = repo.prefix || '.'
  const differing = await line(repo.dir, ['diff', '--name-only', '-z', '--no-renames', before, tree, '--', scope])
  await git(repo.dir, ['restore', `--source=${tree}`, '--staged', '--worktree', '--', scope])
  return differing
    .split('\0')
    .filter(path => path !== '')
    .map(path => path.slice(repo.prefix.length))
}

export async function describeCommit(repo: Repository, commit: string): Promise<Commit> {
  const [id = '', author = '', email = '', time = '', subject = ''] = (
    await line(repo.dir, ['show', '--no-patch', '--format=%H%x00%an%x00%ae%x00%aI%x00%s', commit])
  ).split('\0')
  return { id, author, email, time, subject }
}

/** The site as it is in a tree or commit: what is read cannot change meanwhile. */
export function gitSource(repo: Repository, treeish: string): SiteSource {
  const contents = new Map<string, Buffer>()
  return {
    async files() {
      const listing = await git(repo.dir, ['ls-tree', '-r', '-l', '-z', '--full-tree', `${treeish}:${repo.prefix}`])
      const entries = listing
        .toString('utf8')
        .split('\0')
        .filter(entry => entry !== '')
        .map(parseTreeLine)
      const files = await resolveLinks(
        repo,
        entries.filter(entry => belongsToSite(entry.path)),
      )
      await prefetch(repo, files, contents)
      return files
    },
    async read(file) {
      const blob = file.blob ?? ''
      return contents.get(blob) ?? git(repo.dir, ['cat-file', 'blob', blob])
    },
    blob: file => Promise.resolve(file.blob ?? ''),
  }
}

interface TreeLine extends SourceFile {
  readonly mode: string
  readonly blob: string
}

function parseTreeLine(entry: string): TreeLine {
  const [, mode = '', blob = '', size = '', path = ''] = /^(\d+) \w+ ([0-9a-f]+) +(\S+)\t(.*)$/s.exec(entry) ?? []
  return { path, mode, blob, size: Number(size) || 0, ...(mode === '160000' && { refused: 'is a git submodule' }) }
}

async function resolveLinks(repo: Repository, entries: readonly TreeLine[]): Promise<SourceFile[]> {
  const byPath = new Map(entries.map(entry => [entry.path, entry]))
  return Promise.all(
    entries.map(async (entry): Promise<SourceFile> => {
      if (entry.mode !== '120000') return entry
      const target = (await git(repo.dir, ['cat-file', 'blob', entry.blob])).toString('utf8')
      const path = posix.normalize(posix.join(posix.dirname(entry.path), target))
      const outside = target.startsWith('/') || path.startsWith('..')
      const found = byPath.get(path)
      if (outside) return { path: entry.path, size: 0, refused: LEADS_OUT }
      if (found === undefined || found.mode === '120000')
        return { path: entry.path, size: 0, refused: 'is a symbolic link to nothing' }
      return { path: entry.path, size: found.size, blob: found.blob }
    }),
  )
}

/** The YAML files, all in one go: a process per file would cost more than the whole rest. */
async function prefetch(repo: Repository, files: readonly SourceFile[], into: Map<string, Buffer>): Promise<void> {
  const readable = files.filter(
    file => file.path.endsWith('.yaml') && file.size <= MAX_YAML_BYTES && file.blob !== undefined,
  )
  const wanted = [...new Set(readable.map(file => file.blob ?? ''))]
  if (wanted.length === 0) return
  const output = await git(repo.dir, ['cat-file', '--batch'], { input: `${wanted.join('\n')}\n` })
  let at = 0
  for (const blob of wanted) {
    const headerEnd = output.indexOf('\n', at)
    const size = Number(output.toString('latin1', at, headerEnd).split(' ')[2])
    into.set(blob, output.subarray(headerEnd + 1, headerEnd + 1 + size))
    at = headerEnd + 1 + size + 1
  }
}
