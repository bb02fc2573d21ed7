import { METADATA_SIZE, type MetadataPlace, type MetadataWriter } from './metadata.ts'

/**
 * A directory listing: runs of names, each run behind a header with what its names have in common, the block of the inode
 * table their inodes are in. Long listings have an index, so that a name is found without reading all of them.
 */
export interface Child {
  readonly name: Buffer
  /** A basic inode type, also of extended inodes. */
  readonly type: number
  readonly inode: number
  readonly place: MetadataPlace
}

export interface Listing {
  readonly place: MetadataPlace
  readonly size: number
  readonly index: readonly IndexEntry[]
}

/** The first name of a run, and where that run starts: in the listing and in the directory table. */
export interface IndexEntry {
  readonly at: number
  readonly block: number
  readonly name: Buffer
}

/** Names in byte order: the kernel stops looking where it would have come. */
export function writeListing(children: readonly Child[], table: MetadataWriter): Listing {
  const place = table.place
  const index: IndexEntry[] = []
  let size = 0
  let indexed = 0
  for (let start = 0; start < children.length;) {
    const first = children[start]
    if (first === undefined) break
    if (size - indexed + HEADER_SIZE + lengthOf(first) > METADATA_SIZE) {
      index.push({ at: size, block: table.place.block, name: first.name })
      indexed = size
    }
    const run = runFrom(first, children, start, METADATA_SIZE - (size - indexed))
    const bytes = encodeRun(run, first)
    table.append(bytes)
    size += bytes.length
    start += run.length
  }
  return { place, size, index }
}

/** Inodes in one block of the inode table, their numbers not too far from the first, no more bytes than there is room. */
function runFrom(first: Child, children: readonly Child[], start: number, room: number): readonly Child[] {
  let end = start
  let length = HEADER_SIZE
  for (; end < children.length && end - start < MAX_RUN; end++) {
    const child = children[end]
    if (child === undefined || child.place.block !== first.place.block) break
    const distance = child.inode - first.inode
    if (distance > 32767 || distance < -32768) break
    length += lengthOf(child)
    if (length > room) break
  }
  return children.slice(start, end)
}

function encodeRun(run: readonly Child[], first: Child): Buffer {
  const bytes = Buffer.allocUnsafe(run.reduce((sum, child) => sum + lengthOf(child), HEADER_SIZE))
  let at = bytes.writeUInt32LE(run.length - 1, 0)
  at = bytes.writeUInt32LE(first.place.block, at)
  at = bytes.writeUInt32LE(first.inode, at)
  for (const { name, type, inode, place } of run) {
    at = bytes.writeUInt16LE(place.offset, at)
    at = bytes.writeInt16LE(inode - first.inode, at)
    at = bytes.writeUInt16LE(type, at)
    at = bytes.writeUInt16LE(name.length - 1, at)
    at += name.copy(bytes, at)
  }
  return bytes
}

const MAX_RUN = 256
const HEADER_SIZE = 12

const lengthOf = ({ name }: Child): number => 8 + name.length
