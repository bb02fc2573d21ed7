import { listText, versionOf } from './list.ts'

/** Enough for some changes of a large site. */
const MOST_BYTES = 32 * 2 ** 20

/** Lists that no node is to have any more: those that are off, or slow, have them for some time yet. The oldest go first. */
export class EarlierLists {
  readonly #texts = new Map<string, Buffer>()
  readonly #most: number
  #bytes = 0

  constructor(most = MOST_BYTES) {
    this.#most = most
  }

  add(version: string, text: Buffer): void {
    if (this.#texts.has(version)) return
    // A copy: what it is a part of may hold contents, and secrets, which nobody needs any more.
    this.#texts.set(version, Buffer.from(text))
    this.#bytes += text.length
    for (const [old, { length }] of this.#texts) {
      if (this.#bytes <= this.#most) return
      this.#texts.delete(old)
      this.#bytes -= length
    }
  }

  get(version: string): string | undefined {
    return version === NOTHING_VERSION ? NOTHING : this.#texts.get(version)?.toString()
  }
}

/** What a node has that is to have no files. */
const NOTHING = listText([])
const NOTHING_VERSION = versionOf(NOTHING)
