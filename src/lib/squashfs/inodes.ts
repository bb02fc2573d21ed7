import type { Entry, FileEntry } from '../tree/entry.ts'
import type { Place } from './data.ts'
import type { Listing } from './directories.ts'
import { BLOCK_SIZE, EXTENDED, INODE_TYPE, NO_FRAGMENT, NO_XATTRS, timeField } from './format.ts'

/**
 * Inodes: a common header, then what belongs to the type. The extended form of a type holds what the basic one has no
 * room for: extended attributes, more than one name, sizes and places beyond 4 GiB, the index of a long directory.
 */
export interface InodeFields {
  readonly entry: Entry
  readonly number: number
  /** Positions in the id table. */
  readonly owner: number
  readonly group: number
  /** Position in the table of extended attributes, or NO_XATTRS. */
  readonly xattrs: number
}

export function encodeFile(fields: InodeFields & { entry: FileEntry }, links: number, place: Place = NOWHERE): Buffer {
  const { size } = fields.entry
  const sparse = place.blocks.reduce(
    (sum, field, position) => (field === 0 ? sum + Math.min(BLOCK_SIZE, size - position * BLOCK_SIZE) : sum),
    0,
  )
  const basic = fields.xattrs === NO_XATTRS && links === 1 && sparse === 0 && place.start < LIMIT_32 && size < LIMIT_32
  const inode = new Fields(fields, !basic, 40 + 4 * place.blocks.length)
  if (basic) inode.u32(place.start, place.fragment, place.offset, size)
  else inode.u64(place.start, size, sparse).u32(links, place.fragment, place.offset, fields.xattrs)
  for (const field of place.blocks) inode.u32(field)
  return inode.bytes
}

export function encodeDirectory(fields: InodeFields, links: number, parent: number, listing: Listing): Buffer {
  const { place, index } = listing
  // The three bytes stand for '.' and '..', which are not in the listing.
  const size = listing.size + 3
  const basic = fields.xattrs === NO_XATTRS && index.length === 0 && size < LIMIT_16
  const inode = new Fields(fields, !basic, 24 + index.reduce((sum, { name }) => sum + 12 + name.length, 0))
  if (basic) return inode.u32(place.block, links).u16(size, place.offset).u32(parent).bytes
  inode.u32(links, size, place.block, parent).u16(index.length, place.offset).u32(fields.xattrs)
  for (const { at, block, name } of index) inode.u32(at, block, name.length - 1).raw(name)
  return inode.bytes
}

export function encodeOther(fields: InodeFields): Buffer {
  const { entry, xattrs } = fields
  const target = Buffer.from(entry.type === 'symlink' ? entry.target : '')
  const inode = new Fields(fields, xattrs !== NO_XATTRS, 12 + target.length).u32(1)
  if (entry.type === 'symlink') inode.u32(target.length).raw(target)
  if (entry.type === 'block' || entry.type === 'char') inode.u32(deviceNumber(entry.major, entry.minor))
  if (xattrs !== NO_XATTRS) inode.u32(xattrs)
  return inode.bytes
}

/** As the kernel's new_encode_dev: 12 bits of major and 20 of minor number. */
const deviceNumber = (major: number, minor: number): number =>
  (minor % 2 ** 8) + major * 2 ** 8 + Math.floor(minor / 2 ** 8) * 2 ** 20

const NOWHERE: Place = { start: 0, blocks: [], fragment: NO_FRAGMENT, offset: 0 }
const LIMIT_32 = 2 ** 32
const LIMIT_16 = 2 ** 16

class Fields {
  readonly #buffer: Buffer
  #at = 0

  constructor({ entry, number, owner, group }: InodeFields, extended: boolean, room: number) {
    this.#buffer = Buffer.allocUnsafe(16 + room)
    this.u16(INODE_TYPE[entry.type] + (extended ? EXTENDED : 0), entry.mode, owner, group)
    this.u32(timeField(entry.mtime), number)
  }

  u16(...values: readonly number[]): this {
    for (const value of values) this.#at = this.#buffer.writeUInt16LE(value, this.#at)
    return this
  }

  u32(...values: readonly number[]): this {
    for (const value of values) this.#at = this.#buffer.writeUInt32LE(value, this.#at)
    return this
  }

  u64(...values: readonly number[]): this {
    for (const value of values) this.#at = this.#buffer.writeBigUInt64LE(BigInt(value), this.#at)
    return this
  }

  raw(bytes: Buffer): this {
    this.#at += bytes.copy(this.#buffer, this.#at)
    return this
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }
}
