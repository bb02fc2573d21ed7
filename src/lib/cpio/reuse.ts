import { Earlier } from '../pack/earlier.ts'
import type { Packed } from '../pack/packed.ts'

/** Segments of earlier archives that can be taken over, by what is in them. */
export interface EarlierSegment {
  readonly source: Earlier
  readonly offset: number
  readonly length: number
}

export class Reusable {
  readonly #segments = new Map<string, EarlierSegment>()
  readonly #sources: Earlier[] = []

  /** Archives made by another recipe, gone or of another size are left aside. */
  static async open(earlier: readonly Packed[], recipe: string): Promise<Reusable> {
    const reusable = new Reusable()
    for (const packed of earlier) await reusable.#add(packed, recipe)
    return reusable
  }

  segment(key: string): EarlierSegment | undefined {
    return this.#segments.get(key)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of this.#sources) await source[Symbol.asyncDispose]()
  }

  async #add(packed: Packed, recipe: string): Promise<void> {
    const { index } = packed
    if (index.format !== 'cpio' || index.recipe !== recipe) return
    const source = await Earlier.open(packed)
    if (source === undefined) return
    this.#sources.push(source)
    for (const [key, offset, length] of index.segments)
      if (offset + length <= packed.size && !this.#segments.has(key))
        this.#segments.set(key, { source, offset, length })
  }
}
