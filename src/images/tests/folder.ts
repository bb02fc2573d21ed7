import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import { compareNames } from '../../lib/tree/entry.ts'
import type { Problem } from '../../site/problems.ts'

/** A folder of tests: read by people, copied into each place they run in. */
const MOST_FILES = 1000
const MOST_BYTES_EACH = 2 ** 20
const MOST_BYTES = 16 * 2 ** 20

export interface Folder {
  /** Paths of its files, in order; empty where there is no folder. */
  readonly files: readonly string[]
  readonly problems: readonly Problem[]
}

export async function listFolder(dir: string, at: string): Promise<Folder> {
  const root = await realpath(dir).catch(() => undefined)
  if (root === undefined) return { files: [], problems: [] }
  const files: string[] = []
  const problems: Problem[] = []
  const complain = (path: string, message: string): void => {
    problems.push({ file: path === '' ? at : `${at}/${path}`, line: 1, column: 1, message })
  }
  let bytes = 0
  for await (const path of walk(root, '')) {
    if (files.length === MOST_FILES) {
      complain('', `holds more than ${MOST_FILES} files`)
      break
    }
    files.push(path)
    const info = await lstat(join(root, path))
    bytes += info.size
    if (info.isSymbolicLink()) {
      if (!(await staysInside(root, path))) complain(path, 'is a symbolic link that leads to no file of the folder')
    } else if (!info.isFile()) complain(path, 'is not a plain file')
    else if (info.size > MOST_BYTES_EACH) complain(path, 'is larger than 1 MiB')
  }
  if (bytes > MOST_BYTES) complain('', 'holds more than 16 MiB')
  return { files, problems }
}

async function* walk(root: string, path: string): AsyncGenerator<string> {
  const entries = await readdir(join(root, path), { withFileTypes: true })
  for (const entry of entries.sort((a, b) => compareNames(a.name, b.name))) {
    const inner = path === '' ? entry.name : `${path}/${entry.name}`
    if (entry.isDirectory()) yield* walk(root, inner)
    else yield inner
  }
}

/** It must mean the same wherever the folder is copied to. */
async function staysInside(root: string, path: string): Promise<boolean> {
  const target = await realpath(join(root, path)).catch(() => undefined)
  if (target === undefined || !target.startsWith(root + sep)) return false
  return !isAbsolute(await readlink(join(root, path))) && (await lstat(target)).isFile()
}
