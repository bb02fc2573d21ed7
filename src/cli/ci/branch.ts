import { git, openRepository } from '../../site/git.ts'
import type { Io } from '../io.ts'

/** What CI systems say of the branch they build; merge requests are built detached from theirs. */
const VARIABLES = ['CI_MERGE_REQUEST_SOURCE_BRANCH_NAME', 'CI_COMMIT_BRANCH', 'GITHUB_HEAD_REF', 'GITHUB_REF_NAME']
const MAIN = new Set(['main', 'master', 'trunk'])

/** Where what was merged goes. */
export const MAIN_CHANNEL = 'dev'

/** The channel of a branch: `dev` for the main one, its own name for any other; undefined where there is none. */
export async function branchChannel(io: Io, siteDir: string): Promise<string | undefined> {
  const said = VARIABLES.map(name => io.env[name]).find(value => value !== undefined && value !== '')
  const branch = said ?? (await checkedOut(siteDir))
  return branch === undefined ? undefined : channelOf(branch)
}

/** Feature/New_GPU → feature-new_gpu */
export function channelOf(branch: string): string | undefined {
  if (MAIN.has(branch)) return MAIN_CHANNEL
  const slug = branch
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^[-_]+|[-_]+$/g, '')
  return slug === '' ? undefined : slug
}

async function checkedOut(siteDir: string): Promise<string | undefined> {
  const repo = await openRepository(siteDir).catch(() => undefined)
  if (repo === undefined) return undefined
  const head = (await git(repo.dir, ['rev-parse', '--abbrev-ref', 'HEAD'])).toString('utf8').trim()
  return head === 'HEAD' ? undefined : head
}
