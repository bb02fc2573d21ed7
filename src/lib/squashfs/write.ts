import { Output } from '../pack/output.ts'
import { Pace } from '../pack/pace.ts'
import type { Packed, SquashfsIndex } from '../pack/packed.ts'
import type { FileTree } from '../tree/entry.ts'
import { DataWriter, type DataLayout } from './data.ts'
import { BLOCK_SIZE } from './format.ts'
import { Frames } from './frames.ts'
import { Reusable } from './reuse.ts'
import { encodeSuperblock, SUPERBLOCK_SIZE } from './superblock.ts'
import { encodeTable, fragmentRecords } from './tables.ts'
import { encodeTree } from './tree.ts'

export interface SquashfsOptions {
  /** When the image was made, in seconds since 1970; part of its bytes. */
  readonly time: number
  /** Of zstd. */
  readonly level?: number
  /** Images written before: what is unchanged is taken from them. The result is the same, only sooner there. */
  readonly reuse?: readonly Packed[]
  readonly signal?: AbortSignal
}

/**
 * Writes a squashfs 4.0 image of a tree, the same bytes for the same tree. In order: superblock, data, inodes, directory
 * listings, fragment table, ids, extended attributes, padding. The file must not exist; on failure it is left behind.
 */
export async function writeSquashfs(tree: FileTree, file: string, options: SquashfsOptions): Promise<Packed> {
  const { time, level = 3, reuse = [], signal } = options
  const pace = new Pace(signal)
  const recipe = `1 zstd ${process.versions.zstd} level ${level} blocks ${BLOCK_SIZE}`
  await using reusable = await Reusable.open(reuse, recipe)
  await using output = await Output.create(file, { hash: false })
  using frames = new Frames(level)
  await output.append(Buffer.alloc(SUPERBLOCK_SIZE))
  const data = await new DataWriter(tree, output, frames, reusable, pace).write()
  const superblock = await writeTables(tree, data, output, { time, level, pace })
  await output.append(Buffer.alloc(-output.position & (PADDED_TO - 1)))
  await output.flush()
  await output.overwrite(superblock, 0)
  const sha256 = await output.digestOfFile(() => pace.rest())
  return { file, size: output.position, sha256, index: indexOf(data, recipe) }
}

async function writeTables(
  tree: FileTree,
  data: DataLayout,
  output: Output,
  { time, level, pace }: { time: number; level: number; pace: Pace },
): Promise<Buffer> {
  const tables = await encodeTree(tree, data, level, pace)
  const inodeTable = output.position
  await output.append(tables.inodes)
  const directoryTable = output.position
  await output.append(tables.directories)
  const fragments = encodeTable(fragmentRecords(data.fragments), output.position, level)
  await output.append(fragments.bytes)
  const ids = encodeTable(tables.ids.records, output.position, level)
  await output.append(ids.bytes)
  const xattrs = tables.xattrs.encode(output.position)
  if (xattrs !== undefined) await output.append(xattrs.bytes)
  return encodeSuperblock({
    inodes: tables.inodeCount,
    time,
    fragments: data.fragments.length,
    ids: tables.ids.count,
    root: tables.root.block * 65_536 + tables.root.offset,
    bytesUsed: output.position,
    idTable: ids.start,
    xattrTable: xattrs?.start,
    inodeTable,
    directoryTable,
    fragmentTable: fragments.start,
  })
}

/** Loop devices want whole pages. */
const PADDED_TO = 4096

function indexOf({ places, fragments }: DataLayout, recipe: string): SquashfsIndex {
  const contents: SquashfsIndex['contents'] = []
  for (const [sha256, { start, blocks }] of places) if (blocks.length > 0) contents.push([sha256, start, [...blocks]])
  return {
    format: 'squashfs',
    recipe,
    contents,
    fragments: fragments.map(({ key, start, field }) => [key, start, field]),
  }
}
