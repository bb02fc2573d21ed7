/** Makes a change inside a map in braces, on one line or several; see splice.ts. */
import { isMap, isNode, isScalar, type Pair, type YAMLMap } from 'yaml'
import { type Change, nest } from './changes.ts'
import { parseNodes } from './parse.ts'
import { isQuote, type Quote, writeFlow, writeFlowEntry, writeFlowKey } from './write.ts'

/** `path` starts inside the map that stands from `start` to `end`. */
export function spliceFlow(
  text: string,
  start: number,
  end: number,
  path: readonly string[],
  change: Change,
): string | undefined {
  const source = text.slice(start, end)
  const { contents } = parseNodes(source)
  const result = isMap(contents) ? changeMap(source, contents, path, change) : undefined
  return result === undefined ? undefined : text.slice(0, start) + result + text.slice(end)
}

function changeMap(
  source: string,
  map: YAMLMap,
  [key = '', ...rest]: readonly string[],
  change: Change,
): string | undefined {
  const index = map.items.findIndex(pair => isScalar(pair.key) && pair.key.source === key)
  const pair = map.items[index]
  if (pair === undefined)
    return change.op === 'set' ? addItem(source, map, writeFlowEntry(key, nest(rest, change.value))) : undefined
  if (rest.length > 0 && isMap(pair.value) && pair.value.items.length > 0)
    return changeMap(source, pair.value, rest, change)
  if (change.op === 'set')
    return replace(source, pair.value, writeFlow(nest(rest, change.value), quoteOf(source, pair.value)))
  if (rest.length > 0) return undefined
  if (change.op === 'rename') return replace(source, pair.key, writeFlowKey(change.to))
  return map.items.length === 1 ? replace(source, map, '{}') : removeItem(source, map, index)
}

function replace(source: string, node: unknown, by: string): string | undefined {
  const [start, end] = rangeOf(node)
  return start === end ? undefined : source.slice(0, start) + by + source.slice(end)
}

/** Behind the last item; on a line of its own when that one has its own too. */
function addItem(source: string, map: YAMLMap, item: string): string | undefined {
  const last = map.items.at(-1)
  if (last === undefined) return undefined
  const { start, end } = spanOf(last)
  const line = lineAround(source, start, end)
  if (line === undefined) return `${source.slice(0, end)}, ${item}${source.slice(end)}`
  const margin = source.slice(line.start, start)
  const comma = line.comma ? '' : ','
  const rest = `${margin}${item}${line.comma ? ',' : ''}\n`
  return source.slice(0, end) + comma + source.slice(end, line.end) + rest + source.slice(line.end)
}

function removeItem(source: string, map: YAMLMap, index: number): string | undefined {
  const [previous, item, next] = [map.items[index - 1], map.items[index], map.items[index + 1]]
  if (item === undefined) return undefined
  const span = spanOf(item)
  const line = lineAround(source, span.start, span.end)
  let [start, end] = [span.start, span.end]
  // A comma that is left before the closing brace is allowed.
  if (line !== undefined) [start, end] = [line.start, line.end]
  else if (next !== undefined) end = spanOf(next).start
  else if (previous !== undefined) start = spanOf(previous).end
  // A comment in between belongs to somebody.
  if (line === undefined && source.slice(start, end).includes('#')) return undefined
  return source.slice(0, start) + source.slice(end)
}

/** The lines of an item that shares them with nothing but its comma and a comment. */
function lineAround(
  source: string,
  start: number,
  end: number,
): { start: number; end: number; comma: boolean } | undefined {
  const lineStart = source.lastIndexOf('\n', start) + 1
  const newline = source.indexOf('\n', end)
  const behind = /^\s*(,?)\s*(?:\s#.*)?$/.exec(source.slice(end, newline))
  if (lineStart === 0 || newline === -1 || source.slice(lineStart, start).trim() !== '' || behind === null)
    return undefined
  return { start: lineStart, end: newline + 1, comma: behind[1] === ',' }
}

function quoteOf(source: string, node: unknown): Quote | undefined {
  const quote = source.charAt(rangeOf(node)[0])
  return isQuote(quote) ? quote : undefined
}

function spanOf(pair: Pair): { start: number; end: number } {
  const key = rangeOf(pair.key)
  return { start: key[0], end: Math.max(key[1], rangeOf(pair.value)[1]) }
}

function rangeOf(node: unknown): readonly [number, number] {
  const range = isNode(node) ? node.range : undefined
  return range ? [range[0], range[1]] : [0, 0]
}
