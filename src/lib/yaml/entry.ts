/** Where the parts of one `key: value` of a block map are, by the word of the `yaml` package. */
import { isCollection, isMap, isNode, isPair, isScalar, type Node, type YAMLMap, type YAMLSeq } from 'yaml'
import { parseNodes } from './parse.ts'
import type { Tree } from './tree.ts'

/** From the start of its key's line to the line of the next key, comments before that one included. */
export interface Entry {
  readonly start: number
  readonly end: number
  /** Indentation of the key. */
  readonly column: number
  readonly value: Tree
}

/** Offsets in the whole text. */
export interface Parts {
  readonly keyStart: number
  readonly keyEnd: number
  readonly colonEnd: number
  readonly valueStart: number
  readonly valueEnd: number
  /** The comment on the line of the key, or behind a value of one line, with the spaces before it. */
  readonly comment: string
  /** The start of the first line below that is not part of the value. */
  readonly end: number
}

/** `undefined` when the entry is not laid out as `key: value` at the start of its line. */
export function partsOf(text: string, entry: Entry): Parts | undefined {
  const source = text.slice(entry.start, entry.end)
  const { contents } = parseNodes(source, { keepSourceTokens: true })
  const pair = isMap(contents) ? contents.items[0] : undefined
  const colon = pair?.srcToken?.sep?.find(({ type }) => type === 'map-value-ind')
  if (pair === undefined || colon === undefined || source.slice(0, pair.key.range[0]).trim() !== '') return undefined
  if (!isNode(pair.value)) return undefined
  const [valueStart, valueEnd] = pair.value.range
  const colonEnd = colon.offset + 1
  const contentEnd = contentEndOf(pair.value)
  const comment = commentOf(source, colonEnd, pair.value)
  if (contentEnd === undefined || comment === undefined) return undefined
  return {
    keyStart: entry.start + pair.key.range[0],
    keyEnd: entry.start + pair.key.range[1],
    colonEnd: entry.start + colonEnd,
    valueStart: entry.start + valueStart,
    valueEnd: entry.start + valueEnd,
    comment,
    end: entry.start + (source[contentEnd - 1] === '\n' ? contentEnd : afterLine(source, contentEnd)),
  }
}

/** The end of the last value inside: the package counts comments below a collection as part of it. */
function contentEndOf(node: unknown): number | undefined {
  if (isPair(node)) return contentEndOf(node.value ?? node.key)
  if (!isNode(node)) return undefined
  return isLines(node) ? contentEndOf(node.items.at(-1)) : node.range?.[1]
}

function commentOf(source: string, colonEnd: number, value: Node): string | undefined {
  const keyLine = source.slice(colonEnd, afterLine(source, colonEnd)).trimEnd()
  if (/^\s+#/.test(keyLine)) return keyLine
  if (isScalar(value) && (value.type === 'BLOCK_LITERAL' || value.type === 'BLOCK_FOLDED'))
    return /\s+#.*$/.exec(keyLine)?.[0] ?? ''
  if (isLines(value)) return keyLine === '' ? '' : undefined
  const end = value.range?.[1] ?? colonEnd
  const behind = source.slice(end, afterLine(source, end)).trimEnd()
  return /^(?:\s+#|$)/.test(behind) ? behind : undefined
}

/** A collection without brackets. */
const isLines = (node: unknown): node is YAMLMap | YAMLSeq => isCollection(node) && node.flow !== true

function afterLine(text: string, offset: number): number {
  const newline = text.indexOf('\n', offset)
  return newline === -1 ? text.length : newline + 1
}
