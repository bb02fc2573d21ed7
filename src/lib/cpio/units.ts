import type { Pace } from '../pack/pace.ts'
import { compareNames, type Entry, type FileEntry, type FileTree, type SymlinkEntry } from '../tree/entry.ts'
import { headerLength, paddedToFour } from './header.ts'

/** What must not be torn apart: one entry, or a file with all its names. */
export interface Unit {
  /** The names, in order; all but a file's have one. The content comes with the last. */
  readonly names: readonly string[]
  readonly entry: Entry
  /** Where it stands in the tree: with the last of its names, when the directories of all of them are there. */
  readonly path: string
  /** In the uncompressed archive. */
  readonly size: number
}

export async function unitsOf(tree: FileTree, pace: Pace): Promise<Unit[]> {
  const lastName = new Map<string, string>()
  for (const entry of tree.entries)
    if (entry.type === 'file' && entry.linkTo !== undefined) lastName.set(entry.linkTo, entry.path)
  const linked = new Map<string, { readonly entry: FileEntry; readonly names: string[] }>()
  const units: Unit[] = []
  for (const entry of withInit(tree.entries)) {
    if (pace.due()) await pace.rest()
    const first = entry.type === 'file' ? (entry.linkTo ?? entry.path) : undefined
    const last = first === undefined ? undefined : lastName.get(first)
    if (entry.type !== 'file' || first === undefined || last === undefined) {
      units.push(unit(entry, [nameIn(entry)], entry.path))
      continue
    }
    const file = linked.get(first) ?? { entry, names: [] }
    linked.set(first, file)
    file.names.push(nameIn(entry))
    if (last === entry.path) units.push(unit(file.entry, file.names, entry.path))
  }
  return units
}

/** A name that would end the archive is written in another way. */
const nameIn = ({ path }: Entry): string => (path === '' ? '.' : path === 'TRAILER!!!' ? './TRAILER!!!' : path)

function unit(entry: Entry, names: readonly string[], path: string): Unit {
  const headers = names.reduce((sum, name) => sum + headerLength(name), 0)
  return { entry, names, path, size: headers + paddedToFour(bodyLength(entry)) }
}

export const bodyLength = (entry: Entry): number =>
  entry.type === 'file' ? entry.size : entry.type === 'symlink' ? Buffer.byteLength(entry.target) : 0

/** The kernel runs /init of an initramfs, and only that; a root file system has /sbin/init. */
function withInit(entries: readonly Entry[]): readonly Entry[] {
  if (entries.some(entry => entry.path === INIT.path)) return entries
  const after = entries.findIndex(({ path }) => !path.includes('/') && compareNames(path, INIT.path) > 0)
  return entries.toSpliced(after === -1 ? entries.length : after, 0, INIT)
}

const INIT: SymlinkEntry = {
  type: 'symlink',
  path: 'init',
  target: 'sbin/init',
  mode: 0o777,
  uid: 0,
  gid: 0,
  mtime: 0,
}
