import { randomUUID } from 'node:crypto'
import { realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError, messageOf } from '../lib/errors.ts'
import { exec, type ExecOptions } from '../lib/exec.ts'

/** The git repository a site lives in; the site may be a folder of a larger repository. */
export interface Repository {
  readonly dir: string
  /** Folder of the site inside the repository, '' or 'path/to/site/'. */
  readonly prefix: string
}

export interface Author {
  readonly name: string
  readonly email: string
}

// Never asks, never pages, never runs a background job that outlives the command.
const QUIET = { GIT_TERMINAL_PROMPT: '0', GIT_PAGER: 'cat', GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C.UTF-8' }

export async function git(dir: string, args: readonly string[], options: ExecOptions = {}): Promise<Buffer> {
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
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]
  return (await line(repo.dir, args, { allow: [1] })) || undefined
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
  const args = ['status', '--porcelain', '-z', '--no-renames', '--untracked-files=all', '--', repo.prefix || '.']
  const status = await line(repo.dir, args)
  return status
    .split('\0')
    .filter(entry => entry !== '')
    .map(entry => entry.slice('XY '.length + repo.prefix.length))
}

/**
 * The site's files as they stand, committed or not, as a tree in git: so that what was applied can always be read again.
 * Nobody's staged changes are touched.
 */
export async function snapshotTree(repo: Repository): Promise<string> {
  const head = await headCommit(repo)
  return withOwnIndex(repo, async env => {
    await git(repo.dir, ['read-tree', head], { env })
    await git(repo.dir, ['add', '--all', '--', repo.prefix || '.'], { env })
    return line(repo.dir, ['write-tree'], { env })
  })
}

/** Works in an index of its own, beside the one people stage their changes in. */
async function withOwnIndex<Result>(
  repo: Repository,
  work: (env: Record<string, string>) => Promise<Result>,
): Promise<Result> {
  const index = `${await gitDirectory(repo)}/muster-index.${randomUUID()}`
  try {
    return await work({ GIT_INDEX_FILE: index })
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

/**
 * Records the named files as they stand (or that they are gone), and nothing else that is staged; the commit that came of
 * it, or the present one when there is nothing to record.
 */
export async function commitPaths(
  repo: Repository,
  paths: readonly string[],
  message: string,
  author?: Author,
): Promise<string> {
  await stagePaths(repo, paths)
  return withOwnIndex(repo, async index => {
    const head = await resolveCommit(repo, 'HEAD')
    await git(repo.dir, ['read-tree', head ?? '--empty'], { env: index })
    await stagePaths(repo, paths, index)
    const tree = await line(repo.dir, ['write-tree'], { env: index })
    if (head !== undefined && tree === (await treeOf(repo, head))) return head
    const parents = head === undefined ? [] : ['-p', head]
    const env = await identity(repo, author)
    const sign = (await isSet(repo, 'commit.gpgSign')) ? ['-S'] : []
    const commit = await line(repo.dir, ['commit-tree', tree, ...parents, ...sign, '-F', '-'], {
      env,
      input: `${message}\n`,
    })
    // Only if nobody else committed meanwhile.
    await git(repo.dir, ['update-ref', '-m', 'muster', 'HEAD', commit, head ?? '0'.repeat(commit.length)], { env })
    return commit
  })
}

async function isSet(repo: Repository, name: string): Promise<boolean> {
  const args = ['-C', repo.dir, 'config', '--type=bool', '--get', name]
  return (await exec('git', args, { allow: [1] })).stdout.toString('utf8').trim() === 'true'
}

/** Makes the index say what the files say. */
export async function stagePaths(
  repo: Repository,
  paths: readonly string[],
  env: Record<string, string> = {},
): Promise<void> {
  const input = paths.map(path => `${repo.prefix}${path}\0`).join('')
  await git(repo.dir, ['update-index', '--add', '--remove', '-z', '--stdin'], { env, input })
}

/** Who commits: whoever is named, else whom git knows; and when git knows nobody, that is no reason to fail. */
async function identity(repo: Repository, author: Author | undefined): Promise<Record<string, string>> {
  const isKnown = (await exec('git', ['-C', repo.dir, 'var', 'GIT_COMMITTER_IDENT'], { allow: [128] })).exitCode === 0
  const fallback = isKnown ? undefined : { name: 'muster', email: 'muster@localhost' }
  const who = author ?? fallback
  return {
    ...(who && { GIT_AUTHOR_NAME: who.name, GIT_AUTHOR_EMAIL: who.email }),
    ...(fallback && { GIT_COMMITTER_NAME: fallback.name, GIT_COMMITTER_EMAIL: fallback.email }),
  }
}

/** The site's paths that differ between a commit and a tree. */
export async function differingPaths(repo: Repository, commit: string, tree: string): Promise<string[]> {
  const differing = await line(repo.dir, [
    'diff',
    '--name-only',
    '-z',
    '--no-renames',
    commit,
    tree,
    '--',
    repo.prefix || '.',
  ])
  return differing
    .split('\0')
    .filter(path => path !== '')
    .map(path => path.slice(repo.prefix.length))
}

/** Makes the site's files what they were in a tree, and leaves the rest of the repository alone. */
export async function checkoutTree(repo: Repository, tree: string): Promise<void> {
  await git(repo.dir, ['restore', `--source=${tree}`, '--staged', '--worktree', '--', repo.prefix || '.'])
}

/** Makes these paths what the last commit says: files and index; what it does not have goes. */
export async function restorePaths(repo: Repository, paths: readonly string[]): Promise<void> {
  const full = paths.map(path => `${repo.prefix}${path}`)
  const input = full.map(path => `${path}\0`).join('')
  await git(repo.dir, ['update-index', '--force-remove', '-z', '--stdin'], { input })
  const listing = await line(repo.dir, ['ls-tree', '-r', '-z', '--full-tree', 'HEAD', '--', ...full])
  const kept = listing.split('\0').filter(entry => entry !== '')
  if (kept.length > 0) {
    await git(repo.dir, ['update-index', '-z', '--index-info'], { input: kept.map(entry => `${entry}\0`).join('') })
    await git(repo.dir, ['checkout-index', '--force', '-z', '--stdin'], {
      input: kept.map(entry => `${entry.split('\t')[1]}\0`).join(''),
    })
  }
  const known = new Set(kept.map(entry => entry.split('\t')[1]))
  for (const path of full) if (!known.has(path)) await rm(join(repo.dir, path), { force: true })
}

export const gitDirectory = (repo: Repository): Promise<string> => line(repo.dir, ['rev-parse', '--absolute-git-dir'])

export async function describeCommit(repo: Repository, commit: string): Promise<{ author: string; subject: string }> {
  const shown = await line(repo.dir, ['show', '--no-patch', '--format=%an%x00%s', commit])
  const [author = '', subject = ''] = shown.split('\0')
  return { author, subject }
}
