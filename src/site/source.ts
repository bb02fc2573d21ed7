import { createHash } from 'node:crypto'
import { lstat, readFile, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { MusterError } from '../lib/errors.ts'

/** Where a site's files are read from: a directory, or a tree in git (git.ts). Both answer alike for the same content. */
export interface SiteSource {
  /** Every file that belongs to the site, in order of path. */
  files(): Promise<readonly SourceFile[]>
  read(file: SourceFile): Promise<Buffer>
  /** Identity of its content: git's blob id. */
  blob(file: SourceFile): Promise<string>
}

export interface SourceFile {
  readonly path: string
  readonly size: number
  /** Why it must not be read, when it is no plain file of the site. */
  readonly refused?: string
  readonly blob?: string
}

/** What is looked at; everything else in the repository is none of our business. */
const TOP_FILES = new Set(['site.yaml', 'nodes.yaml', 'site.yml', 'nodes.yml'])
const TOP_FOLDERS = new Set(['clusters', 'nodes', 'groups', 'images', 'files', 'modules', 'ansible', 'bases'])

export function belongsToSite(path: string): boolean {
  const [top = '', ...rest] = path.split('/')
  return TOP_FOLDERS.has(top) || (rest.length === 0 && TOP_FILES.has(top))
}

/** Hundreds of thousands of listed nodes fit; a core dump added by mistake does not. */
export const MAX_YAML_BYTES = 32 * 2 ** 20
export const MAX_FILE_BYTES = 64 * 2 ** 20

export const LEADS_OUT = 'is a symbolic link that leads out of the site'
export const LEADS_NOWHERE = 'is a symbolic link to nothing'
export const LEADS_TO_DIRECTORY = 'is a symbolic link to a directory'

export async function directorySource(dir: string): Promise<SiteSource> {
  const root = await realpath(dir).catch(() => undefined)
  if (root === undefined || !(await isFile(join(root, 'site.yaml')))) {
    throw new MusterError('SITE_NOT_FOUND', `${dir} holds no site (there is no site.yaml in it)`)
  }
  const read = (file: SourceFile): Promise<Buffer> => readFile(join(root, file.path))
  return {
    files: async () => (await walk(root, root)).sort((a, b) => (a.path < b.path ? -1 : 1)),
    read,
    blob: async file => blobId(await read(file)),
  }
}

/** git's name for a file's content, so that a directory and a commit can be compared. */
export function blobId(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

async function walk(root: string, dir: string): Promise<SourceFile[]> {
  const entries = await readdir(dir, { withFileTypes: true })
  const found = await Promise.all(
    entries.map(async (entry): Promise<SourceFile[]> => {
      const full = join(dir, entry.name)
      const path = relative(root, full).split(sep).join('/')
      if (dir === root ? !TOP_FILES.has(path) && !TOP_FOLDERS.has(path) : entry.name === '.git') return []
      if (entry.isDirectory()) return walk(root, full)
      return [await describe(root, full, path)]
    }),
  )
  return found.flat()
}

async function describe(root: string, full: string, path: string): Promise<SourceFile> {
  const info = await lstat(full)
  if (info.isFile()) return { path, size: info.size }
  if (!info.isSymbolicLink()) return { path, size: 0, refused: 'is not a plain file' }
  const target = await realpath(full).catch(() => undefined)
  if (target === undefined) {
    const named = resolve(dirname(full), await readlink(full))
    return { path, size: 0, refused: named.startsWith(root + sep) ? LEADS_NOWHERE : LEADS_OUT }
  }
  if (!target.startsWith(root + sep)) return { path, size: 0, refused: LEADS_OUT }
  const there = await stat(target)
  return there.isFile() ? { path, size: there.size } : { path, size: 0, refused: LEADS_TO_DIRECTORY }
}

const isFile = (path: string): Promise<boolean> =>
  lstat(path).then(
    info => info.isFile() || info.isSymbolicLink(),
    () => false,
  )
