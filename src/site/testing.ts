/** Sites for tests: from a map of path → text, in memory, in a directory or in a git repository. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import { exec } from '../lib/exec.ts'
import { checkSite } from './check.ts'
import { type Problem, formatProblem } from './problems.ts'
import type { Plain } from './paths.ts'
import { type Site, nodeNamed, openSite } from './site.ts'
import { type SiteSource, type SourceFile, blobId } from './source.ts'

/** Path → content; null takes a file of the small site away. */
export type Files = Readonly<Record<string, string | Buffer | null>>

/** As little as a valid site needs; three nodes. */
export const SMALL: Readonly<Record<string, string>> = {
  'site.yaml': `site: demo
networks:
  prov: { cidr: 10.77.0.0/16, gateway: 10.77.0.1, unknown: 10.77.255.0/24 }
defaults:
  boot: { image: base }
`,
  'images/base/image.yaml': 'from: { debian: bookworm }\n',
  'nodes.yaml': 'n[1-3]:\n',
}

const present = (files: Files): (readonly [string, Buffer])[] =>
  Object.entries(files).flatMap(([path, content]) => (content === null ? [] : [[path, Buffer.from(content)] as const]))

export function memorySource(files: Files): SiteSource {
  const contents = new Map(present(files))
  const read = (file: SourceFile): Buffer => {
    const content = contents.get(file.path)
    if (content === undefined) throw new Error(`no ${file.path}`)
    return content
  }
  return {
    files: () =>
      Promise.resolve(
        [...contents]
          .map(([path, content]) => ({ path, size: content.length }))
          .sort((a, b) => (a.path < b.path ? -1 : 1)),
      ),
    read: file => Promise.resolve(read(file)),
    blob: file => Promise.resolve(blobId(read(file))),
  }
}

/** The small site with these files on top. */
export const siteOf = (files: Files = {}, previous?: Site): Promise<Site> =>
  openSite(memorySource({ ...SMALL, ...files }), previous)

/** What is wrong with the small site with these files on top, as people read it. */
export const problemsOf = async (files: Files): Promise<string[]> => format(checkSite(await siteOf(files)))

export const format = (problems: readonly Problem[]): string[] => problems.map(formatProblem)

/** What a node gets. */
export const valueOf = (site: Site, node = 'n1'): Plain => site.resolve(nodeNamed(site, node)).value

export async function temporaryDir(): Promise<string> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'muster-test-')))
  onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

export async function writeFiles(dir: string, files: Files): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    if (content === null) {
      await rm(join(dir, path), { force: true })
      continue
    }
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), content)
  }
}

/** A directory with exactly these files. */
export async function directoryOf(files: Files): Promise<string> {
  const dir = await temporaryDir()
  await writeFiles(dir, files)
  return dir
}

/** To be called before all tests of a file: nothing that git is told on this machine reaches them. */
export function isolateGit(): void {
  vi.stubEnv('GIT_CONFIG_GLOBAL', '/dev/null')
  vi.stubEnv('GIT_CONFIG_NOSYSTEM', '1')
  vi.stubEnv('GIT_CEILING_DIRECTORIES', tmpdir())
  for (const name of ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_AUTHOR_NAME', 'GIT_AUTHOR_EMAIL'])
    vi.stubEnv(name, undefined)
}

const TESTER = ['-c', 'user.name=Tester', '-c', 'user.email=tester@example.org', '-c', 'init.defaultBranch=main']

export async function git(dir: string, ...args: string[]): Promise<string> {
  return (await exec('git', ['-C', dir, ...TESTER, ...args])).stdout.toString('utf8').trimEnd()
}

/** The content of a directory, recorded. */
export async function commitAll(dir: string, message = 'first'): Promise<string> {
  await git(dir, 'add', '--all')
  await git(dir, 'commit', '--quiet', '--message', message)
  return git(dir, 'rev-parse', 'HEAD')
}

/** A repository with one commit of exactly these files. */
export async function repositoryOf(files: Files): Promise<string> {
  const dir = await directoryOf(files)
  await git(dir, 'init', '--quiet')
  await commitAll(dir)
  return dir
}

/** What a MusterError says, as `CODE: message`; anything else that is thrown goes on. */
export async function failureOf(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    if (error instanceof MusterError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'no failure'
}
