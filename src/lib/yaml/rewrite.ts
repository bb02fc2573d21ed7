import { type Document, isMap, isScalar, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { type Change, nest } from './changes.ts'
import { parseNodes } from './parse.ts'
import type { Tree } from './tree.ts'

/**
 * Makes a change by letting the `yaml` package write the text anew: comments and order stay, spaces may not. For
 * texts that `splice` cannot change in place.
 */
export function rewrite(text: string, change: Change, step: number): string | undefined {
  const document = parseNodes(text)
  const root = document.contents ?? new YAMLMap()
  if (!isMap(root) || !changeMap(root, change.path, change)) return undefined
  const output: Document = document
  output.contents = root
  // Width 0: lines are never folded, however long.
  return output.toString({ lineWidth: 0, indent: step, blockQuote: 'literal' })
}

function changeMap(map: YAMLMap, [key = '', ...rest]: readonly string[], change: Change): boolean {
  const index = map.items.findIndex(pair => isScalar(pair.key) && (pair.key.source ?? pair.key.value) === key)
  const pair = map.items[index]
  if (pair === undefined) {
    if (change.op === 'set') map.items.push(new Pair(new Scalar(key), nodeOf(nest(rest, change.value))))
    return change.op === 'set'
  }
  if (rest.length > 0 && isMap(pair.value)) return changeMap(pair.value, rest, change)
  if (change.op === 'set') pair.value = nodeOf(nest(rest, change.value))
  else if (rest.length > 0) return false
  else if (change.op === 'delete') map.items.splice(index, 1)
  else if (isScalar(pair.key)) pair.key.value = change.to
  return true
}

function nodeOf(tree: Tree): Node {
  if (tree.kind === 'scalar') {
    const scalar = new Scalar(tree.value)
    if (tree.tag !== undefined) scalar.tag = tree.tag
    return scalar
  }
  if (tree.kind === 'list') {
    const list = new YAMLSeq()
    list.items = tree.items.map(nodeOf)
    return list
  }
  const map = new YAMLMap()
  map.items = [...tree.entries].map(([key, { value }]) => new Pair(new Scalar(key), nodeOf(value)))
  return map
}
