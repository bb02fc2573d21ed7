import type { Entry } from '../tree/entry.ts'
import { NO_XATTRS } from './format.ts'
import { MetadataWriter } from './metadata.ts'
import { places, type Table } from './tables.ts'

/**
 * Extended attributes: sets of names and values, each set stored once, and a table of the sets. The format knows three
 * families of names; others (system.posix_acl_access) are left out, as mksquashfs does.
 */
export class XattrTable {
  readonly #level: number
  readonly #sets: MetadataWriter
  readonly #records: Buffer[] = []
  readonly #positions = new Map<string, number>()

  constructor(level: number) {
    this.#level = level
    this.#sets = new MetadataWriter(level)
  }

  positionOf({ xattrs }: Entry): number {
    if (xattrs === undefined) return NO_XATTRS
    const set = encodeSet(xattrs)
    if (set.count === 0) return NO_XATTRS
    const key = set.bytes.toString('latin1')
    const known = this.#positions.get(key)
    if (known !== undefined) return known
    const position = this.#records.length
    this.#positions.set(key, position)
    const { block, offset } = this.#sets.place
    const record = Buffer.alloc(16)
    record.writeBigUInt64LE(BigInt(block) * 65_536n + BigInt(offset), 0)
    record.writeUInt32LE(set.count, 8)
    record.writeUInt32LE(set.bytes.length, 12)
    this.#records.push(record)
    this.#sets.append(set.bytes)
    return position
  }

  /** Sets, table of sets, and a header before the places of the latter; undefined when there are none. */
  encode(at: number): Table | undefined {
    if (this.#records.length === 0) return undefined
    const sets = this.#sets.finish().bytes
    const metadata = new MetadataWriter(this.#level)
    metadata.append(Buffer.concat(this.#records))
    const table = metadata.finish()
    const header = Buffer.alloc(16)
    header.writeBigUInt64LE(BigInt(at), 0)
    header.writeUInt32LE(this.#records.length, 8)
    const list = places(table.starts, at + sets.length)
    return { bytes: Buffer.concat([sets, table.bytes, header, list]), start: at + sets.length + table.bytes.length }
  }
}

const FAMILIES = ['user.', 'trusted.', 'security.'] as const

function encodeSet(xattrs: Readonly<Record<string, string>>): { readonly bytes: Buffer; readonly count: number } {
  const parts: Buffer[] = []
  for (const [name, base64] of Object.entries(xattrs).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const family = FAMILIES.findIndex(prefix => name.startsWith(prefix))
    const prefix = FAMILIES[family]
    if (prefix === undefined) continue
    const rest = Buffer.from(name.slice(prefix.length))
    const value = Buffer.from(base64, 'base64')
    const head = Buffer.alloc(4)
    head.writeUInt16LE(family, 0)
    head.writeUInt16LE(rest.length, 2)
    const size = Buffer.alloc(4)
    size.writeUInt32LE(value.length)
    parts.push(Buffer.concat([head, rest, size, value]))
  }
  return { bytes: Buffer.concat(parts), count: parts.length }
}
