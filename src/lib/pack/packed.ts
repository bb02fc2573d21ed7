import { z } from 'zod'

/**
 * What a writer says about the archive it wrote, so that the next one can take unchanged parts over instead of reading
 * and compressing them again. The index is kept as JSON beside the archive and read back with `parseIndex`.
 */
export interface Packed {
  readonly file: string
  readonly size: number
  readonly sha256: string
  readonly index: PackIndex
}

const Key = z.string().regex(/^[0-9a-f]{64}$/)
const Offset = z.int().nonnegative()

/** Everything beside the tree that the bytes depend on; parts made by another recipe would not be the same bytes. */
const Recipe = z.string().max(200)

const MAX_BLOCK_FIELD = 2 ** 25 - 1
const BlockField = z.int().nonnegative().max(MAX_BLOCK_FIELD)

export const SquashfsIndex = z.strictObject({
  format: z.literal('squashfs'),
  recipe: Recipe,
  /** The sha256 of a file's content, where its first block lies, and its block list as the inode has it. */
  contents: z.array(z.tuple([Key, Offset, z.array(BlockField)])),
  /** What is in a fragment block (a hash of the contents in it), where it lies, and its size field. */
  fragments: z.array(z.tuple([Key, Offset, BlockField])),
})
export type SquashfsIndex = Readonly<z.infer<typeof SquashfsIndex>>

export const CpioIndex = z.strictObject({
  format: z.literal('cpio'),
  recipe: Recipe,
  /** What is in a segment (a hash of its headers and contents), where it lies and how long it is. */
  segments: z.array(z.tuple([Key, Offset, z.int().positive()])),
})
export type CpioIndex = Readonly<z.infer<typeof CpioIndex>>

const PackIndex = z.discriminatedUnion('format', [SquashfsIndex, CpioIndex])
export type PackIndex = SquashfsIndex | CpioIndex

/** An index as it was read back from disk; undefined when it cannot be used. */
export function parseIndex(value: unknown): PackIndex | undefined {
  const parsed = PackIndex.safeParse(value)
  return parsed.success ? parsed.data : undefined
}
