import { readFile } from 'node:fs/promises'
import { type Overlay, withTool } from '../build/sandbox.ts'
import type { MergedTree } from '../layers/merge.ts'
import { parseApkInstalled } from './apk.ts'
import { packageDatabase } from './database.ts'
import { parseDpkgStatus } from './dpkg.ts'
import { type InstalledPackage, tidyPackages } from './package.ts'
import { RPM_QUERY_FORMAT, parseRpmQuery } from './rpm.ts'

/** What is installed in a tree, by whichever manager it has; nothing for a tree made without one. */
export async function installedPackages(tree: MergedTree, overlay: Overlay): Promise<InstalledPackage[]> {
  const database = packageDatabase(path => tree.get(path) !== undefined)
  if (database === undefined) return []
  if (database.manager === 'rpm') {
    const argv = [
      'rpm',
      '--root=/target',
      `--dbpath=/${database.dbpath}`,
      '--query',
      '--all',
      '--queryformat',
      RPM_QUERY_FORMAT,
    ]
    return parseRpmQuery((await withTool(overlay, argv)).stdout.toString('utf8'))
  }
  const text = (path: string): Promise<string> => {
    const entry = tree.get(path)
    return entry?.type === 'file' ? readFile(tree.locate(entry), 'utf8') : Promise.resolve('')
  }
  const below = database.directory === undefined ? [] : filesBelow(tree, database.directory)
  const texts = await Promise.all([...database.files, ...below].map(text))
  return tidyPackages(texts.flatMap(database.manager === 'dpkg' ? parseDpkgStatus : parseApkInstalled))
}

const filesBelow = (tree: MergedTree, directory: string): string[] =>
  tree.entries.map(entry => entry.path).filter(path => path.startsWith(`${directory}/`) && !path.endsWith('.md5sums'))
