import { open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { editYaml } from '../lib/yaml/edit.ts'
import { checkSite } from './check.ts'
import type { FileEdits } from './edit.ts'
import { roleOf } from './files.ts'
import { type Author, type Repository, commitPaths, dirtyPaths, headCommit, openRepository, stagePaths } from './git.ts'
import { journaled, recover } from './journal.ts'
import { siteInvalid } from './problems.ts'
import { type Site, openSite } from './site.ts'
import { type SiteSource, blobId, directorySource } from './source.ts'

const NOTHING_CHANGED = 'nothing was changed; the lines are those the site would have had'

/** A site's directory that can be changed: edit, check the outcome, write, commit. */
export interface Workspace {
  readonly dir: string
  readonly repo: Repository
  open(previous?: Site): Promise<Site>
  /** All or nothing: what would make the site invalid is refused, and no file is touched. No files: it was so already. */
  change(
    plan: (site: Site) => FileEdits | Promise<FileEdits>,
    message: string,
    author?: Author,
  ): Promise<{ commit: string; files: string[] }>
}

export async function openWorkspace(dir: string): Promise<Workspace> {
  await directorySource(dir)
  const repo = await openRepository(dir)
  await recover(repo)
  const open = async (previous?: Site): Promise<Site> => openSite(await directorySource(dir), previous)
  return {
    dir,
    repo,
    open,
    async change(plan, message, author) {
      const source = await directorySource(dir)
      const site = await openSite(source)
      const contents = await edited(dir, await plan(site))
      const files = [...contents.keys()]
      await refuseDirty(repo, files)
      const problems = checkSite(await openSite(overlaySource(source, contents), site))
      if (problems.length > 0) throw siteInvalid(problems, NOTHING_CHANGED)
      const before = new Map(await Promise.all(files.map(async path => [path, await contentOf(dir, path)] as const)))
      const isSame = files.every(path => contents.get(path)?.equals(before.get(path) ?? Buffer.alloc(0)) === true)
      if (isSame) return { commit: await headCommit(repo), files: [] }
      return journaled(repo, files, async () => {
        try {
          for (const [path, content] of contents) await write(join(dir, path), content)
          return { commit: await commitPaths(repo, files, message, author), files }
        } catch (error) {
          for (const [path, content] of before) await write(join(dir, path), content)
          await stagePaths(repo, files).catch(() => {})
          throw error
        }
      })
    },
  }
}

const contentOf = (dir: string, path: string): Promise<Buffer | null> => readFile(join(dir, path)).catch(() => null)

async function edited(dir: string, edits: FileEdits): Promise<Map<string, Buffer | null>> {
  const contents = new Map<string, Buffer | null>()
  for (const [path, changes] of edits) {
    if (roleOf(path) === undefined) throw new MusterError('EDIT_INVALID', `${path} is none of the site's YAML files`)
    if (changes === null) {
      contents.set(path, null)
      continue
    }
    const before = await readFile(join(dir, path), 'utf8').catch(() => '')
    contents.set(path, Buffer.from(changes.length === 0 && before === '' ? '{}\n' : editYaml(before, changes)))
  }
  return contents
}

async function refuseDirty(repo: Repository, paths: readonly string[]): Promise<void> {
  const dirty = (await dirtyPaths(repo)).filter(path => paths.includes(path))
  if (dirty.length > 0) {
    const verb = dirty.length === 1 ? 'has' : 'have'
    throw new MusterError('SITE_DIRTY', `${dirty.join(', ')} ${verb} changes that are not committed`, {
      hint: 'commit or drop them first',
    })
  }
}

/** Either the old content or the new is there, whenever one looks; mode and links stay as they are. */
async function write(path: string, content: Buffer | null): Promise<void> {
  if (content === null) return rm(path, { force: true })
  const target = await realpath(path).catch(() => path)
  await makeDirectory(dirname(target))
  const mode = await stat(target).then(
    info => info.mode & 0o777,
    () => 0o644,
  )
  const temporary = `${target}.muster-new`
  const file = await open(temporary, 'w')
  try {
    await file.writeFile(content)
    await file.chmod(mode)
    await file.sync()
  } finally {
    await file.close()
  }
  return rename(temporary, target)
}

/** A source with some files changed or taken away. */
export function overlaySource(base: SiteSource, contents: ReadonlyMap<string, Buffer | null>): SiteSource {
  const changed = (path: string): Buffer | undefined => contents.get(path) ?? undefined
  return {
    async files() {
      const kept = (await base.files()).filter(file => !contents.has(file.path))
      const added = [...contents].flatMap(([path, content]) =>
        content === null ? [] : [{ path, size: content.length }],
      )
      return [...kept, ...added].sort((a, b) => (a.path < b.path ? -1 : 1))
    },
    read: async file => changed(file.path) ?? (await base.read(file)),
    blob: async file => {
      const content = changed(file.path)
      return content === undefined ? base.blob(file) : blobId(content)
    },
  }
}
