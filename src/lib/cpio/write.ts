import { Output } from '../pack/output.ts'
import { Pace } from '../pack/pace.ts'
import type { CpioIndex, Packed } from '../pack/packed.ts'
import { cutStably } from '../pack/stable-cut.ts'
import type { FileTree } from '../tree/entry.ts'
import { SegmentCompressor, type Compression } from './compress.ts'
import { Reusable, type EarlierSegment } from './reuse.ts'
import { buildSegment, type Segment } from './segment.ts'
import { unitsOf, type Unit } from './units.ts'

export interface CpioOptions {
  readonly compression: 'zstd' | 'gzip'
  readonly level?: number
  /** Archives written before: what is unchanged is taken from them. The result is the same, only sooner there. */
  readonly reuse?: readonly Packed[]
  readonly signal?: AbortSignal
}

/**
 * Writes an initramfs of a tree, the same bytes for the same tree: newc archives one after another, each compressed by
 * itself. The kernel unpacks them in order into one root. The file must not exist; on failure it is left behind.
 */
export async function writeCpio(tree: FileTree, file: string, options: CpioOptions): Promise<Packed> {
  const { compression: method, level = method === 'zstd' ? 3 : 6, reuse = [], signal } = options
  const pace = new Pace(signal)
  const recipe = recipeOf({ method, level })
  await using reusable = await Reusable.open(reuse, recipe)
  await using output = await Output.create(file, { hash: true })
  using writer = new CpioWriter(tree, output, reusable, { method, level }, pace)
  const segments = await writer.write()
  await output.flush()
  return { file, size: output.position, sha256: output.digest(), index: { format: 'cpio', recipe, segments } }
}

/** The zlib in Node takes different ways on different processors. */
const recipeOf = ({ method, level }: Compression): string =>
  method === 'zstd'
    ? `1 zstd ${process.versions.zstd} level ${level}`
    : `1 gzip ${process.versions.zlib} ${process.arch} level ${level}`

/** A segment on its way: compressing, or lying in an earlier archive. */
interface Begun {
  readonly units: readonly Unit[]
  readonly key: string
  readonly source: SegmentCompressor | EarlierSegment
}

class CpioWriter {
  readonly #tree: FileTree
  readonly #output: Output
  readonly #reusable: Reusable
  readonly #compression: Compression
  readonly #pace: Pace
  readonly #compressing = new Set<SegmentCompressor>()
  readonly #written: CpioIndex['segments'] = []

  constructor(tree: FileTree, output: Output, reusable: Reusable, compression: Compression, pace: Pace) {
    this.#tree = tree
    this.#output = output
    this.#reusable = reusable
    this.#compression = compression
    this.#pace = pace
  }

  async write(): Promise<CpioIndex['segments']> {
    const begun: Begun[] = []
    for (const units of cutStably(await unitsOf(this.#tree, this.#pace), SEGMENT)) {
      begun.push(await this.#begin(units))
      while (this.#compressing.size >= AT_ONCE) await this.#end(begun.shift())
    }
    while (begun.length > 0) await this.#end(begun.shift())
    return this.#written
  }

  [Symbol.dispose](): void {
    for (const compressor of this.#compressing) compressor[Symbol.dispose]()
  }

  async #begin(units: readonly Unit[]): Promise<Begun> {
    const segment = await buildSegment(units, this.#pace)
    const source = this.#reusable.segment(segment.key) ?? this.#compress(segment)
    return { units, key: segment.key, source }
  }

  #compress(segment: Segment): SegmentCompressor {
    const compressor = new SegmentCompressor(this.#tree, segment, this.#compression, this.#pace)
    this.#compressing.add(compressor)
    return compressor
  }

  async #end(begun: Begun | undefined): Promise<void> {
    if (begun === undefined) return
    const { units, key, source } = begun
    const start = this.#output.position
    if (source instanceof SegmentCompressor) await this.#append(source)
    else if (!(await source.source.copy(source.offset, source.length, this.#output)))
      await this.#append(this.#compress(await buildSegment(units, this.#pace)))
    this.#written.push([key, start, this.#output.position - start])
    if (this.#pace.due()) await this.#pace.rest()
  }

  async #append(compressor: SegmentCompressor): Promise<void> {
    await compressor.writeTo(this.#output)
    this.#compressing.delete(compressor)
  }
}

const MIB = 1024 * 1024
/** Large enough to compress as well as a whole, small enough to make one anew in no time. */
const SEGMENT = { min: 4 * MIB, max: 16 * MIB }

/** As many as the thread pool has threads. */
const AT_ONCE = 4
