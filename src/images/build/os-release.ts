import { readFile } from 'node:fs/promises'
import type { MergedTree } from '../layers/merge.ts'
import { type OsRelease, parseOsRelease } from '../packages/os-release.ts'

/** What a tree says it is. */
export async function osRelease(tree: MergedTree): Promise<OsRelease | undefined> {
  for (const path of ['etc/os-release', 'usr/lib/os-release']) {
    const entry = tree.get(tree.resolve(path))
    if (entry?.type === 'file' && entry.size < 65_536) return parseOsRelease(await readFile(tree.locate(entry), 'utf8'))
  }
  return undefined
}
