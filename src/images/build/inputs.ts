import { createHash } from 'node:crypto'
import { lstat, readFile, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { compareNames } from '../../lib/tree/entry.ts'

/** What goes into a stage, as one digest: equal values have equal digests, whatever the order of their keys. */
export const digestOf = (value: unknown): string => createHash('sha256').update(canonical(value)).digest('hex')

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return `{${entries
    .sort(([a], [b]) => compareNames(a, b))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`)
    .join(',')}}`
}

type ContentOf = (file: string) => Promise<string | Buffer>

/**
 * A file, or a folder with all that is in it: names, whether executable, content (also another than the file itself has).
 * Not times, not owners: git keeps neither.
 */
export async function digestOfFiles(path: string, contentOf: ContentOf = file => readFile(file)): Promise<string> {
  return digestOf(await listing(path, contentOf))
}

async function listing(path: string, contentOf: ContentOf): Promise<unknown> {
  const stat = await lstat(path)
  if (stat.isSymbolicLink()) return { link: await readlink(path) }
  if (stat.isDirectory()) {
    const names = (await readdir(path)).sort(compareNames)
    return Object.fromEntries(
      await Promise.all(names.map(async name => [name, await listing(join(path, name), contentOf)] as const)),
    )
  }
  const sha256 = createHash('sha256')
    .update(await contentOf(path))
    .digest('hex')
  return { sha256, executable: (stat.mode & 0o100) !== 0 }
}
