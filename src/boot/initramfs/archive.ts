import { encodeHeader, paddedToFour, TRAILER } from '../../lib/cpio/header.ts'
import { comparePaths, parentOf } from '../../lib/tree/entry.ts'

/** What goes into a small archive that is made in memory. All belongs to root and is of 1970. */
export type Item = { readonly path: string } & (
  | { readonly content: string | Buffer; readonly mode?: number }
  | { readonly linkTo: string }
  | { readonly device: readonly [major: number, minor: number] }
  | { readonly directory: true }
)

/** A newc archive: the same bytes for the same items, in whatever order they come. Directories need not be named. */
export function archiveOf(items: readonly Item[]): Buffer {
  const all = new Map<string, Item>()
  const addParents = (path: string): void => {
    const parent = parentOf(path)
    if (parent === '' || all.has(parent)) return
    all.set(parent, { path: parent, directory: true })
    addParents(parent)
  }
  for (const item of items) {
    all.set(item.path, item)
    addParents(item.path)
  }
  const sorted = [...all.values()].sort((a, b) => comparePaths(a.path, b.path))
  return Buffer.concat([...sorted.flatMap((item, position) => partsOf(item, position + 1)), TRAILER])
}

function partsOf(item: Item, inode: number): Buffer[] {
  const body = 'content' in item ? Buffer.from(item.content) : Buffer.from('linkTo' in item ? item.linkTo : '')
  const [major, minor] = 'device' in item ? item.device : [0, 0]
  const header = encodeHeader({
    name: item.path,
    inode,
    mode: modeOf(item),
    uid: 0,
    gid: 0,
    links: 'directory' in item ? 2 : 1,
    mtime: 0,
    size: body.length,
    major,
    minor,
  })
  return [header, body, Buffer.alloc(paddedToFour(body.length) - body.length)]
}

function modeOf(item: Item): number {
  if ('content' in item) return 0o100000 + (item.mode ?? 0o644)
  if ('linkTo' in item) return 0o120777
  return 'device' in item ? 0o020600 : 0o040755
}
