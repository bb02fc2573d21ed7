import { createHash } from 'node:crypto'
import { Content } from '../pack/content.ts'
import type { Pace } from '../pack/pace.ts'
import type { Entry, FileEntry, FileTree } from '../tree/entry.ts'
import { encodeHeader, paddedToFour, TRAILER } from './header.ts'
import { bodyLength, type Unit } from './units.ts'

/**
 * A segment is a whole archive with some of the entries. Its bytes depend on these alone: inode numbers are counted anew in
 * each, and the link count of a directory is always 2, whatever other segments put into it.
 */
export interface Segment {
  /** Bytes as they are, and files whose content comes in between. */
  readonly parts: readonly (Buffer | FileEntry)[]
  /** Uncompressed. */
  readonly size: number
  /** The same for segments with the same bytes. */
  readonly key: string
}

export async function buildSegment(units: readonly Unit[], pace: Pace): Promise<Segment> {
  const parts: (Buffer | FileEntry)[] = []
  for (const [position, unit] of units.entries()) {
    addUnit(unit, position + 1, parts)
    if (pace.due()) await pace.rest()
  }
  parts.push(TRAILER)
  const hash = createHash('sha256')
  let size = 0
  for (const part of parts) {
    const isFile = !Buffer.isBuffer(part)
    hash.update(isFile ? part.sha256 : part)
    size += isFile ? part.size : part.length
  }
  return { parts, size, key: hash.digest('hex') }
}

function addUnit({ entry, names }: Unit, inode: number, parts: (Buffer | FileEntry)[]): void {
  const body = bodyLength(entry)
  for (const [position, name] of names.entries()) {
    const header = encodeHeader({
      name,
      inode,
      mode: TYPE_BITS[entry.type] + entry.mode,
      uid: entry.uid,
      gid: entry.gid,
      links: entry.type === 'directory' ? 2 : names.length,
      mtime: entry.mtime,
      // As GNU cpio has it: content with the last name.
      size: position === names.length - 1 ? body : 0,
      major: 'major' in entry ? entry.major : 0,
      minor: 'minor' in entry ? entry.minor : 0,
    })
    parts.push(header)
  }
  if (body === 0) return
  if (entry.type === 'symlink') parts.push(Buffer.from(entry.target))
  if (entry.type === 'file') parts.push(entry)
  const padding = paddedToFour(body) - body
  if (padding > 0) parts.push(Buffer.alloc(padding))
}

const TYPE_BITS = {
  directory: 0o040000,
  file: 0o100000,
  symlink: 0o120000,
  block: 0o060000,
  char: 0o020000,
  fifo: 0o010000,
  socket: 0o140000,
} as const satisfies Record<Entry['type'], number>

/** Reads a segment piece by piece, headers and contents. */
export class SegmentReader {
  readonly #tree: FileTree
  readonly #parts: readonly (Buffer | FileEntry)[]
  #part = 0
  #at = 0
  #content: Content | undefined

  constructor(tree: FileTree, { parts }: Segment) {
    this.#tree = tree
    this.#parts = parts
  }

  /** Fills the target up to its last byte, which `Content` needs to itself; says how many bytes there were. */
  fill(target: Buffer): number {
    let filled = 0
    while (filled < target.length - 1) {
      const part = this.#parts[this.#part]
      if (part === undefined) break
      const room = target.length - 1 - filled
      const left = (Buffer.isBuffer(part) ? part.length : part.size) - this.#at
      const length = Math.min(room, left)
      if (Buffer.isBuffer(part)) part.copy(target, filled, this.#at, this.#at + length)
      else (this.#content ??= new Content(this.#tree, part)).take(target, filled, length)
      filled += length
      this.#at += length
      if (length === left) this.#next()
    }
    return filled
  }

  get done(): boolean {
    return this.#part === this.#parts.length
  }

  [Symbol.dispose](): void {
    this.#content?.[Symbol.dispose]()
    this.#content = undefined
  }

  #next(): void {
    this[Symbol.dispose]()
    this.#part++
    this.#at = 0
  }
}
