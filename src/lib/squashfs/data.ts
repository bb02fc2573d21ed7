import { Content } from '../pack/content.ts'
import type { Output } from '../pack/output.ts'
import type { Pace } from '../pack/pace.ts'
import type { FileEntry, FileTree } from '../tree/entry.ts'
import { BLOCK_SIZE, NO_FRAGMENT, STORED } from './format.ts'
import type { Frames } from './frames.ts'
import { planData, type BlocksStep, type FragmentStep } from './plan.ts'
import type { Reusable } from './reuse.ts'

/**
 * The data area: blocks of files and fragment blocks, one after another without gaps. Each is a zstd frame, or the bytes
 * as they are where that would not be smaller. Blocks of zeros take no room.
 */
export interface DataLayout {
  /** Where the content of a file lies, by its sha256. Files without content are not in it. */
  readonly places: ReadonlyMap<string, Place>
  readonly fragments: readonly FragmentPlace[]
}

/** As an inode has it. */
export interface Place {
  /** Of the first block in the image. */
  readonly start: number
  readonly blocks: readonly number[]
  readonly fragment: number
  /** In the uncompressed fragment block. */
  readonly offset: number
}

export interface FragmentPlace {
  readonly key: string
  readonly start: number
  readonly field: number
}

export class DataWriter {
  readonly #tree: FileTree
  readonly #output: Output
  readonly #frames: Frames
  readonly #reusable: Reusable
  readonly #pace: Pace
  readonly #places = new Map<string, Place>()
  readonly #fragments: FragmentPlace[] = []
  /** What is to be appended, in order: each waits for its frame and notes where it went. */
  readonly #turns: (() => Promise<void>)[] = []
  readonly #spare: Buffer[] = []

  constructor(tree: FileTree, output: Output, frames: Frames, reusable: Reusable, pace: Pace) {
    this.#tree = tree
    this.#output = output
    this.#frames = frames
    this.#reusable = reusable
    this.#pace = pace
  }

  async write(): Promise<DataLayout> {
    for (const step of await planData(this.#tree, this.#pace)) {
      if (step.kind === 'blocks') await this.#writeFile(step)
      else await this.#writeFragment(step)
    }
    while (this.#turns.length > 0) await this.#takeTurn()
    return { places: this.#places, fragments: this.#fragments }
  }

  async #writeFile({ file }: BlocksStep): Promise<void> {
    const place: Mutable<Place> = { start: 0, blocks: [], fragment: NO_FRAGMENT, offset: 0 }
    this.#places.set(file.sha256, place)
    const earlier = this.#reusable.content(file)
    if (earlier === undefined) return this.#compressFile(file, place)
    await this.#queue(async () => {
      place.start = this.#output.position
      if (await earlier.source.copy(earlier.offset, earlier.length, this.#output)) place.blocks = earlier.fields
      else await this.#alone(() => this.#compressFile(file, place))
    })
  }

  async #compressFile(file: FileEntry, place: Mutable<Place>): Promise<void> {
    const blocks: number[] = []
    place.blocks = blocks
    using content = new Content(this.#tree, file)
    while (content.left > 0) {
      const block = this.#takeBuffer()
      const length = Math.min(BLOCK_SIZE, content.left)
      content.take(block, 0, length)
      const frame = this.#compress(block, length)
      await this.#queue(async () => {
        if (blocks.length === 0) place.start = this.#output.position
        blocks.push(await this.#append(await frame))
      })
    }
  }

  async #writeFragment({ files, key }: FragmentStep): Promise<void> {
    const fragment = this.#fragments.length
    let size = 0
    for (const file of files) {
      this.#places.set(file.sha256, { start: 0, blocks: [], fragment, offset: size })
      size += file.size
    }
    const place: Mutable<FragmentPlace> = { key, start: 0, field: 0 }
    this.#fragments.push(place)
    const earlier = this.#reusable.fragment(key)
    if (earlier === undefined) return this.#compressFragment(files, place)
    await this.#queue(async () => {
      place.start = this.#output.position
      if (await earlier.source.copy(earlier.offset, earlier.length, this.#output)) place.field = earlier.fields[0] ?? 0
      else await this.#alone(() => this.#compressFragment(files, place))
    })
  }

  async #compressFragment(files: readonly FileEntry[], place: Mutable<FragmentPlace>): Promise<void> {
    const block = this.#takeBuffer()
    let size = 0
    for (const file of files) {
      using content = new Content(this.#tree, file)
      content.take(block, size, file.size)
      size += file.size
      if (this.#pace.due()) await this.#pace.rest()
    }
    const frame = this.#compress(block, size, { zeros: 'kept' })
    await this.#queue(async () => {
      place.start = this.#output.position
      place.field = await this.#append(await frame)
    })
  }

  /** The bytes to store and their size field. The kernel knows no fragment block without bytes, so there zeros are kept. */
  #compress(buffer: Buffer, length: number, { zeros }: { zeros: 'kept' | 'left out' } = { zeros: 'left out' }) {
    const raw = buffer.subarray(0, length)
    const stored = this.#compressedOrNot(buffer, raw, zeros === 'left out' && isZero(raw))
    // Whoever waits for an earlier block may meet a failure first and never look at this one.
    stored.catch(() => {})
    return stored
  }

  async #compressedOrNot(buffer: Buffer, raw: Buffer, leaveOut: boolean): Promise<Stored> {
    const frame = leaveOut ? Buffer.alloc(0) : await this.#frames.compress(raw)
    if (frame.length >= raw.length) return { bytes: raw, field: raw.length + STORED, buffer }
    this.#spare.push(buffer)
    return { bytes: frame, field: frame.length }
  }

  async #append({ bytes, field, buffer }: Stored): Promise<number> {
    await this.#output.append(bytes)
    if (buffer !== undefined) this.#spare.push(buffer)
    return field
  }

  async #queue(turn: () => Promise<void>): Promise<void> {
    if (this.#pace.due()) await this.#pace.rest()
    this.#turns.push(turn)
    if (this.#turns.length > AHEAD) await this.#takeTurn()
  }

  async #takeTurn(): Promise<void> {
    await this.#turns.shift()?.()
    if (this.#pace.due()) await this.#pace.rest()
  }

  /** Ends what was queued by `work` before what was queued earlier for later. */
  async #alone(work: () => Promise<void>): Promise<void> {
    const later = this.#turns.splice(0)
    await work()
    while (this.#turns.length > 0) await this.#takeTurn()
    this.#turns.push(...later)
  }

  /** One byte more than a block, as `Content` asks for. */
  #takeBuffer(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(BLOCK_SIZE + 1)
  }
}

type Mutable<Value> = { -readonly [Name in keyof Value]: Value[Name] }

interface Stored {
  readonly bytes: Buffer
  readonly field: number
  /** Still in use for the bytes. */
  readonly buffer?: Buffer
}

/** So many blocks are read and compressed before the oldest of them is written. */
const AHEAD = 48

const ZEROS = Buffer.alloc(BLOCK_SIZE)
const isZero = (block: Buffer): boolean => block[0] === 0 && block.equals(ZEROS.subarray(0, block.length))
