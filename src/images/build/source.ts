import { git, openRepository, resolveCommit } from '../../site/git.ts'
import type { Manifest } from '../manifest.ts'

/** Where an image's inputs come from: the last commit that changed them, not the last commit of all. */
export interface Source {
  readonly source: NonNullable<Manifest['source']>
  /** That commit's time. */
  readonly time: string
}

/** Undefined where the site is not in git, or nothing of this was ever committed. `!PATH` is left out. */
export async function sourceOf(siteDir: string, paths: readonly string[]): Promise<Source | undefined> {
  const repo = await openRepository(siteDir).catch(() => undefined)
  if (repo === undefined || (await resolveCommit(repo, 'HEAD')) === undefined) return undefined
  const full = paths.map(path =>
    path.startsWith('!') ? `:(exclude)${repo.prefix}${path.slice(1)}` : `${repo.prefix}${path}`,
  )
  const [log, status, head] = await Promise.all([
    git(repo.dir, ['log', '-1', '--format=%H%x00%ct', '--', ...full]),
    git(repo.dir, ['status', '--porcelain', '-z', '--untracked-files=all', '--', ...full]),
    git(repo.dir, ['rev-parse', '--abbrev-ref', 'HEAD']),
  ])
  const [commit = '', seconds = ''] = log.toString('utf8').trim().split('\0')
  if (commit === '') return undefined
  const branch = head.toString('utf8').trim()
  return {
    source: { commit, ...(branch !== 'HEAD' && { branch }), dirty: status.length > 0 },
    time: `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}Z`,
  }
}
