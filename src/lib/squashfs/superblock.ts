import { BLOCK_LOG, BLOCK_SIZE, timeField } from './format.ts'

/** The first 96 bytes of an image: what it is, and where its tables are. */
export interface Superblock {
  readonly inodes: number
  readonly time: number
  readonly fragments: number
  readonly ids: number
  /** Block and offset of the root's inode in one number. */
  readonly root: number
  /** Without the padding at the end. */
  readonly bytesUsed: number
  readonly idTable: number
  readonly xattrTable: number | undefined
  readonly inodeTable: number
  readonly directoryTable: number
  readonly fragmentTable: number
}

export function encodeSuperblock(fields: Superblock): Buffer {
  const bytes = Buffer.alloc(SUPERBLOCK_SIZE)
  let at = 0
  const u16 = (value: number) => (at = bytes.writeUInt16LE(value, at))
  const u32 = (value: number) => (at = bytes.writeUInt32LE(value, at))
  const u64 = (value: number | undefined) =>
    (at = bytes.writeBigUInt64LE(value === undefined ? NONE : BigInt(value), at))
  bytes.write('hsqs', 'latin1')
  at = 4
  u32(fields.inodes)
  u32(timeField(fields.time))
  u32(BLOCK_SIZE)
  u32(fields.fragments)
  u16(ZSTD)
  u16(BLOCK_LOG)
  u16(DUPLICATES_REMOVED)
  u16(fields.ids)
  u16(4)
  u16(0)
  u64(fields.root)
  u64(fields.bytesUsed)
  u64(fields.idTable)
  u64(fields.xattrTable)
  u64(fields.inodeTable)
  u64(fields.directoryTable)
  u64(fields.fragmentTable)
  // No export table: it serves NFS servers only.
  u64(undefined)
  return bytes
}

export const SUPERBLOCK_SIZE = 96
const NONE = 0xffff_ffff_ffff_ffffn
const ZSTD = 6
const DUPLICATES_REMOVED = 0x40
