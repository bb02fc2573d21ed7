/** What tests of control and of everything above it start from: a site in git, a store, and a control on both. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { exec } from '../lib/exec.ts'
import { initSite } from '../site/init.ts'
import { openWorkspace } from '../site/workspace.ts'
import { openSqliteStore } from '../state/sqlite.ts'
import type { Store } from '../state/store.ts'
import type { Actor } from './actor.ts'
import { Control, type ControlOptions } from './control.ts'

export const operator: Actor = { name: 'olga', role: 'operator', from: '192.0.2.7' }

/** Who commits by hand in tests. */
export const AUTHOR = { name: 'Alice Admin', email: 'alice@example.org' } as const

/** A site of four nodes, n[001-004], committed. */
export interface TestSite extends AsyncDisposable {
  readonly dir: string
  git(...args: string[]): Promise<string>
  read(path: string): Promise<string>
  write(path: string, text: string): Promise<void>
  /** Commits everything that differs; the commit. */
  commit(message: string): Promise<string>
}

export async function makeSite(folder = ''): Promise<TestSite> {
  isolateGit()
  const top = await mkdtemp(join(tmpdir(), 'muster-site-'))
  if (folder !== '') await git(top, 'init', '--quiet', '--initial-branch=main')
  const dir = join(top, folder)
  await initSite(dir, 'demo')
  return {
    dir,
    git: (...args) => git(dir, ...args),
    read: path => readFile(join(dir, path), 'utf8'),
    async write(path, text) {
      await mkdir(dirname(join(dir, path)), { recursive: true })
      await writeFile(join(dir, path), text)
    },
    async commit(message) {
      await git(dir, 'add', '--all')
      await git(dir, 'commit', '--quiet', '--allow-empty', '--message', message)
      return git(dir, 'rev-parse', 'HEAD')
    },
    [Symbol.asyncDispose]: () => rm(top, { recursive: true, force: true }),
  }
}

/** From here on git knows nothing of the machine's settings: neither the tests' own calls nor those of the code under test. */
export function isolateGit(): void {
  Object.assign(process.env, { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' })
}

async function git(dir: string, ...args: string[]): Promise<string> {
  const env = {
    GIT_AUTHOR_NAME: AUTHOR.name,
    GIT_AUTHOR_EMAIL: AUTHOR.email,
    GIT_COMMITTER_NAME: AUTHOR.name,
    GIT_COMMITTER_EMAIL: AUTHOR.email,
  }
  return (await exec('git', ['-C', dir, ...args], { env })).stdout.toString('utf8').trimEnd()
}

export interface TestControl extends AsyncDisposable {
  readonly site: TestSite
  /** Directory of the store's file, state.db. */
  readonly data: string
  readonly store: Store
  readonly control: Control
}

export async function startControl(options: ControlOptions = {}, folder = ''): Promise<TestControl> {
  const site = await makeSite(folder)
  const data = await mkdtemp(join(tmpdir(), 'muster-data-'))
  const store = await openSqliteStore(join(data, 'state.db'))
  const control = await Control.start(store, await openWorkspace(site.dir), options)
  return {
    site,
    data,
    store,
    control,
    async [Symbol.asyncDispose]() {
      await store.close()
      await rm(data, { recursive: true, force: true })
      await site[Symbol.asyncDispose]()
    },
  }
}

/** The nodes.yaml of so many nodes, n001 and on. */
export const nodesYaml = (count: number): string => `n[001-${String(count).padStart(3, '0')}]:
  groups: [compute]
  location: { switch: sw1, port: "{{ index }}" }
  interfaces:
    prov: { address: "{{ '10.77.1.0' | ip_add(index) }}" }
`

/** Polls what no event tells of. */
export async function until(
  what: string,
  check: () => boolean | Promise<boolean>,
  milliseconds = 20_000,
): Promise<void> {
  const deadline = Date.now() + milliseconds
  while (!(await check())) {
    if (Date.now() > deadline) throw new Error(`not within ${milliseconds} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
