import { constants, createGzip, createZstdCompress, type Gzip, type ZstdCompress } from 'node:zlib'
import type { Output } from '../pack/output.ts'
import type { Pace } from '../pack/pace.ts'
import type { FileTree } from '../tree/entry.ts'
import { SegmentReader, type Segment } from './segment.ts'

export interface Compression {
  readonly method: 'zstd' | 'gzip'
  readonly level: number
}

/**
 * Compresses one segment in the thread pool. It begins at once, but of what has not been asked for only so much is kept:
 * a segment with one huge file does not fill the memory while those before it are written.
 */
export class SegmentCompressor {
  readonly #stream: ZstdCompress | Gzip
  readonly #reader: SegmentReader

  constructor(tree: FileTree, segment: Segment, compression: Compression, pace: Pace) {
    this.#stream = open(segment.size, compression)
    this.#reader = new SegmentReader(tree, segment)
    // Met by whoever asks for the bytes.
    this.#stream.on('error', () => {})
    this.#feed(pace).catch((error: Error) => this.#stream.destroy(error))
  }

  async writeTo(output: Output): Promise<void> {
    for await (const bytes of this.#stream) await output.append(bytes as Buffer)
  }

  /** What is still under way is given up. */
  [Symbol.dispose](): void {
    this.#stream.destroy()
    // A piece that waits for room is never answered then.
    this.#reader[Symbol.dispose]()
  }

  /** One piece after another, none given before the one before is done with: the bytes must not depend on the time. */
  async #feed(pace: Pace): Promise<void> {
    using reader = this.#reader
    const buffer = Buffer.allocUnsafeSlow(PIECE + 1)
    for (;;) {
      if (pace.due()) await pace.rest()
      if (this.#stream.destroyed) return
      const piece = buffer.subarray(0, reader.fill(buffer))
      if (reader.done) return void this.#stream.end(piece)
      await new Promise<void>((resolve, reject) => {
        this.#stream.write(piece, error => (error ? reject(error) : resolve()))
      })
    }
  }
}

function open(size: number, { method, level }: Compression): ZstdCompress | Gzip {
  const sizes = { chunkSize: PIECE / 2, readableHighWaterMark: KEPT }
  if (method === 'gzip') return createGzip({ ...sizes, level })
  return createZstdCompress({
    ...sizes,
    pledgedSrcSize: size,
    params: { [constants.ZSTD_c_compressionLevel]: level },
  })
}

const PIECE = 1024 * 1024
/** Compressed bytes that wait for their turn. */
const KEPT = 8 * 1024 * 1024
