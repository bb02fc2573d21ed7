import { MusterError } from '../errors.ts'
import { MetadataWriter } from './metadata.ts'

/**
 * Tables of records of one size: metadata blocks, then the absolute place of each of these blocks. What the superblock
 * points at is the list of places.
 */
export interface Table {
  readonly bytes: Buffer
  /** Of the list of places. */
  readonly start: number
}

export function encodeTable(records: Buffer, at: number, level: number): Table {
  const metadata = new MetadataWriter(level)
  metadata.append(records)
  const { bytes, starts } = metadata.finish()
  return { bytes: Buffer.concat([bytes, places(starts, at)]), start: at + bytes.length }
}

export function places(starts: readonly number[], at: number): Buffer {
  const list = Buffer.alloc(8 * starts.length)
  for (const [position, start] of starts.entries()) list.writeBigUInt64LE(BigInt(at + start), 8 * position)
  return list
}

/** Users and groups: an inode has 16 bits for each, positions in this table of 32-bit ids. */
export class IdTable {
  readonly #positions = new Map<number, number>()

  positionOf(id: number): number {
    const known = this.#positions.get(id)
    if (known !== undefined) return known
    const position = this.#positions.size
    if (position >= MAX_IDS) throw new MusterError('INTERNAL', `more than ${MAX_IDS} users and groups own files`)
    this.#positions.set(id, position)
    return position
  }

  get count(): number {
    return this.#positions.size
  }

  get records(): Buffer {
    const records = Buffer.alloc(4 * this.#positions.size)
    for (const [id, position] of this.#positions) records.writeUInt32LE(id, 4 * position)
    return records
  }
}

const MAX_IDS = 65_535

/** Fragment blocks: place, size field, and four bytes of nothing. */
export function fragmentRecords(fragments: readonly { readonly start: number; readonly field: number }[]): Buffer {
  const records = Buffer.alloc(16 * fragments.length)
  for (const [position, { start, field }] of fragments.entries()) {
    records.writeBigUInt64LE(BigInt(start), 16 * position)
    records.writeUInt32LE(field, 16 * position + 8)
  }
  return records
}
