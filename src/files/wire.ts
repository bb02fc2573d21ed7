import type { Batch, NewList, NodeChange } from './maker.ts'

/** A batch on its way from one thread to another: all small pieces in one buffer that is handed over, not copied. */
export interface WireBatch {
  readonly bytes: ArrayBuffer
  readonly contents: readonly (Piece & { readonly sha256: string; readonly isSecret: boolean })[]
  readonly lists: readonly (Piece & { readonly digest: string; readonly contents: readonly string[] })[]
  readonly nodes: readonly NodeChange[]
}

/** Where it is in the buffer; a large one has its own, so that it can be let go of alone. */
interface Piece {
  readonly at: number
  readonly length: number
  readonly own?: ArrayBuffer
}

const LARGE = 4096

export function pack({ contents, lists, nodes }: Batch): { readonly batch: WireBatch; readonly handed: ArrayBuffer[] } {
  const texts = lists.map(list => Buffer.from(list.text))
  const all = [...contents.map(({ content }) => content), ...texts]
  const bytes = new ArrayBuffer(all.reduce((sum, { length }) => (length < LARGE ? sum + length : sum), 0))
  const handed = [bytes]
  let end = 0
  const piece = (content: Buffer): Piece => {
    const { length } = content
    const own = length < LARGE ? undefined : new ArrayBuffer(length)
    const at = own === undefined ? end : 0
    new Uint8Array(own ?? bytes, at, length).set(content)
    if (own === undefined) end += length
    else handed.push(own)
    return { at, length, ...(own !== undefined && { own }) }
  }
  const batch = {
    bytes,
    contents: contents.map(({ sha256, isSecret, content }) => ({ sha256, isSecret, ...piece(content) })),
    lists: lists.map(({ digest, contents: inside }: NewList, index) => {
      return { digest, contents: inside, ...piece(texts[index] ?? Buffer.alloc(0)) }
    }),
    nodes,
  }
  return { batch, handed }
}

export const unpack = ({ bytes }: WireBatch, { at, length, own }: Piece): Buffer =>
  Buffer.from(own ?? bytes, at, length)

/** What a worker is asked: the files of this tree of the repository. */
export interface Order {
  readonly tree: string
}

/** What it answers, any number of batches and one of the others; to a batch it wants a word that it was taken. */
export type Answer =
  | { readonly kind: 'batch'; readonly batch: WireBatch }
  | { readonly kind: 'done'; readonly lists: readonly string[]; readonly contents: readonly string[] }
  | { readonly kind: 'failed'; readonly reason: string }
