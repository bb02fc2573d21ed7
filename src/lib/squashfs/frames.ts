import { constants, createZstdCompress, type ZstdCompress } from 'node:zlib'
import { MusterError } from '../errors.ts'
import { BLOCK_SIZE } from './format.ts'

/**
 * Compresses data blocks, each to a zstd frame of its own, several at a time in the thread pool. A compressor is kept for
 * many frames: making one for each block takes half as long again. The bytes of a frame are the same either way.
 */
export class Frames {
  readonly #lanes: readonly Lane[]
  readonly #idle: Lane[]
  readonly #waiting: ((lane: Lane) => void)[] = []

  constructor(level: number) {
    this.#lanes = Array.from({ length: LANES }, () => new Lane(level))
    this.#idle = [...this.#lanes]
  }

  /** Must not be changed until it is done. */
  async compress(block: Buffer): Promise<Buffer> {
    const lane = this.#idle.pop() ?? (await new Promise<Lane>(resolve => this.#waiting.push(resolve)))
    try {
      return await lane.compress(block)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#idle.push(lane)
      else next(lane)
    }
  }

  /** What is still under way is given up. */
  [Symbol.dispose](): void {
    this.#waiting.length = 0
    for (const lane of this.#lanes) lane.close()
  }
}

class Lane {
  readonly #level: number
  #stream: ZstdCompress | undefined
  #parts: Buffer[] = []
  #made = 0
  #fail: (error: Error) => void = () => {}

  constructor(level: number) {
    this.#level = level
  }

  compress(block: Buffer): Promise<Buffer> {
    // A frame that does not fit what is left of the output buffer would come in pieces, made in another way.
    if (OUTPUT - this.#made < WORST_FRAME) this.close()
    const stream = (this.#stream ??= this.#open())
    return new Promise((resolve, reject) => {
      this.#fail = reject
      stream.write(block, error => {
        const [frame, ...more] = this.#parts.splice(0)
        if (error) reject(error)
        else if (frame === undefined || more.length > 0)
          reject(new MusterError('INTERNAL', 'zstd did not compress a block in one piece'))
        else {
          this.#made += frame.length
          resolve(frame)
        }
      })
    })
  }

  close(): void {
    this.#stream?.close()
    this.#stream = undefined
    this.#made = 0
  }

  #open(): ZstdCompress {
    // Ends a frame with every write. As all of it is there then, zstd notes its size: the kernel needs to know that the
    // frame fits its block buffer.
    const stream = createZstdCompress({
      flush: constants.ZSTD_e_end,
      chunkSize: OUTPUT,
      params: { [constants.ZSTD_c_compressionLevel]: this.#level },
    })
    stream.on('data', (part: Buffer) => this.#parts.push(part))
    stream.on('error', error => this.#fail(error))
    return stream
  }
}

/** More than the pool has threads: they find something to do even when this one is late. */
const LANES = 10
const OUTPUT = 2 * 1024 * 1024
/** ZSTD_COMPRESSBOUND, and a little more. */
const WORST_FRAME = BLOCK_SIZE + BLOCK_SIZE / 256 + 1024
