import { Earlier } from '../pack/earlier.ts'
import type { Packed } from '../pack/packed.ts'
import type { FileEntry } from '../tree/entry.ts'
import { BLOCK_SIZE, storedLength } from './format.ts'

/** Blocks of earlier images that can be taken over, by what is in them. */
export interface EarlierBlocks {
  readonly source: Earlier
  readonly offset: number
  readonly length: number
  readonly fields: readonly number[]
}

export class Reusable {
  readonly #contents = new Map<string, EarlierBlocks>()
  readonly #fragments = new Map<string, EarlierBlocks>()
  readonly #sources: Earlier[] = []

  /** Images made by another recipe, gone or of another size are left aside. */
  static async open(earlier: readonly Packed[], recipe: string): Promise<Reusable> {
    const reusable = new Reusable()
    for (const packed of earlier) await reusable.#add(packed, recipe)
    return reusable
  }

  content(file: FileEntry): EarlierBlocks | undefined {
    const found = this.#contents.get(file.sha256)
    return found?.fields.length === Math.ceil(file.size / BLOCK_SIZE) ? found : undefined
  }

  fragment(key: string): EarlierBlocks | undefined {
    return this.#fragments.get(key)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of this.#sources) await source[Symbol.asyncDispose]()
  }

  async #add(packed: Packed, recipe: string): Promise<void> {
    const { index } = packed
    if (index.format !== 'squashfs' || index.recipe !== recipe) return
    const source = await Earlier.open(packed)
    if (source === undefined) return
    this.#sources.push(source)
    const add = (to: Map<string, EarlierBlocks>, key: string, offset: number, fields: readonly number[]) => {
      const lengths = fields.map(storedLength)
      const length = lengths.reduce((sum, length) => sum + length, 0)
      const possible = offset + length <= packed.size && lengths.every(length => length <= BLOCK_SIZE)
      if (possible && !to.has(key)) to.set(key, { source, offset, length, fields })
    }
    for (const [key, offset, fields] of index.contents) add(this.#contents, key, offset, fields)
    for (const [key, offset, field] of index.fragments) if (field > 0) add(this.#fragments, key, offset, [field])
  }
}
