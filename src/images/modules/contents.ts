import { createHash } from 'node:crypto'
import type { Dirent } from 'node:fs'
import { lstat, readFile, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { compareNames } from '../../lib/tree/entry.ts'
import type { Digest } from '../manifest.ts'

/** What the folder of a module holds. */
export interface ModuleContents {
  readonly digest: Digest
  readonly problems: readonly { readonly path: string; readonly message: string }[]
}

/** A module brings scripts and configuration; programs come in packages. */
const MAX_FILES = 10_000
const MAX_BYTES = 256 * 2 ** 20

/** Reads all of it, and refuses what would not be the same, or not there, elsewhere. */
export async function moduleContents(dir: string): Promise<ModuleContents> {
  const root = await realpath(dir)
  const files = (await filesBelow(root, '')).sort((a, b) => compareNames(a.path, b.path))
  if (files.length > MAX_FILES) return refused('', `holds more than ${MAX_FILES} files`)
  const problems: { path: string; message: string }[] = []
  const hash = createHash('sha256')
  let bytes = 0
  for (const { path, entry } of files) {
    const message = await refusal(root, path, entry)
    if (message !== undefined) {
      problems.push({ path, message })
      continue
    }
    if (entry.isSymbolicLink()) {
      hash.update(line(path, 'link', await readlink(join(root, path))))
      continue
    }
    const { size, mode } = await lstat(join(root, path))
    bytes += size
    if (bytes > MAX_BYTES) return refused(path, `makes the module larger than ${MAX_BYTES / 2 ** 20} MiB`)
    const content = await readFile(join(root, path))
    // git, too, only knows the owner's bit.
    const kind = (mode & 0o100) === 0 ? 'file' : 'program'
    hash.update(line(path, kind, createHash('sha256').update(content).digest('hex')))
  }
  return { digest: `sha256:${hash.digest('hex')}`, problems }
}

/** In JSON, so that no name can be mistaken for the end of another. */
const line = (path: string, kind: 'file' | 'program' | 'link', what: string): string =>
  `${JSON.stringify([path, kind, what])}\n`

const refused = (path: string, message: string): ModuleContents => ({
  digest: 'sha256:',
  problems: [{ path, message }],
})

interface Found {
  readonly path: string
  readonly entry: Dirent
}

/** Directories count by what is in them, as in git. */
async function filesBelow(root: string, folder: string): Promise<Found[]> {
  const found: Found[] = []
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    if (entry.name === '.git') continue
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) found.push(...(await filesBelow(root, path)))
    else found.push({ path, entry })
    if (found.length > MAX_FILES) break
  }
  return found
}

async function refusal(root: string, path: string, entry: Dirent): Promise<string | undefined> {
  if (path.includes('\uFFFD')) return 'has a name that is not UTF-8'
  if (entry.isFile()) return undefined
  if (!entry.isSymbolicLink()) return 'is not a plain file'
  const link = join(root, path)
  const target = await readlink(link)
  const inside = (found: string): boolean => found === root || found.startsWith(root + sep)
  const real = await realpath(link).catch(() => undefined)
  // One that is named from the root would be another file in an image.
  if (isAbsolute(target) || !inside(real ?? join(dirname(link), target))) return LEADS_OUT
  return real === undefined ? LEADS_NOWHERE : undefined
}

const LEADS_OUT = 'is a symbolic link that leads out of the module'
const LEADS_NOWHERE = 'is a symbolic link to nothing'
