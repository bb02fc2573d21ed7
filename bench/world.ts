import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec } from '../src/lib/exec.ts'
import { type SiteStyle, writeBenchSite } from './sites.ts'

export const MUSTER = new URL('../bin/muster', import.meta.url).pathname

/** A directory that is gone afterwards. */
export async function temporaryDir(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export const GIT_IDENTITY = {
  GIT_AUTHOR_NAME: 'bench',
  GIT_AUTHOR_EMAIL: 'bench@localhost',
  GIT_COMMITTER_NAME: 'bench',
  GIT_COMMITTER_EMAIL: 'bench@localhost',
}

/** A site of that size in a git repository. */
export async function benchRepository(dir: string, nodes: number, style: SiteStyle = 'rules'): Promise<void> {
  await writeBenchSite(dir, nodes, style)
  await makeRepository(dir)
}

export async function makeRepository(dir: string): Promise<void> {
  await exec('git', ['-C', dir, 'init', '--quiet', '--initial-branch=main'])
  await commitAll(dir, 'first')
}

export async function commitAll(dir: string, message: string): Promise<void> {
  await exec('git', ['-C', dir, 'add', '--all'])
  await exec('git', ['-C', dir, 'commit', '--quiet', '--message', message], { env: GIT_IDENTITY })
}
