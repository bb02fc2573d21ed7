/**
 * What a file tree holds, as values: scanned from directories, written by tar, cpio and squashfs, compared, counted.
 * Paths are relative and have no leading slash; the root directory itself is ''.
 */
interface Common {
  readonly path: string
  /** Permission bits with set-uid, set-gid and sticky: 0o7777 at most. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Whole seconds since 1970. */
  readonly mtime: number
  /** Extended attributes: name → value in base64. */
  readonly xattrs?: Readonly<Record<string, string>>
}

export interface DirectoryEntry extends Common {
  readonly type: 'directory'
}

export interface FileEntry extends Common {
  readonly type: 'file'
  readonly size: number
  /** Of its content, in hex. */
  readonly sha256: string
  /** Another name of the same file: the path of its first name, which stands earlier in the tree. */
  readonly linkTo?: string
}

export interface SymlinkEntry extends Common {
  readonly type: 'symlink'
  readonly target: string
}

export interface SpecialEntry extends Common {
  readonly type: 'char' | 'block' | 'fifo' | 'socket'
  /** Of devices; 0 for the others. */
  readonly major: number
  readonly minor: number
}

export type Entry = DirectoryEntry | FileEntry | SymlinkEntry | SpecialEntry

/** A whole tree: the root directory first, every directory before what is in it, names in a directory in byte order. */
export interface FileTree {
  readonly entries: readonly Entry[]
  /** Where the content of a file can be read. */
  locate(file: FileEntry): string
}

/** Byte order of names, as `LC_ALL=C sort` has it. */
export function compareNames(a: string, b: string): number {
  // UTF-16 order differs from byte order only where surrogates are involved.
  if (!SURROGATE.test(a) && !SURROGATE.test(b)) return a < b ? -1 : a > b ? 1 : 0
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

const SURROGATE = /[\uD800-\uDFFF]/

/** The order of a tree: what is in a directory follows it at once, before its next sibling. */
export function comparePaths(a: string, b: string): number {
  const left = a.split('/')
  const right = b.split('/')
  if (a === '' || b === '') return a === b ? 0 : a === '' ? -1 : 1
  for (let depth = 0; depth < left.length && depth < right.length; depth++) {
    const order = compareNames(left[depth] ?? '', right[depth] ?? '')
    if (order !== 0) return order
  }
  return left.length - right.length
}

export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
