/**
 * An edit as a change of the tree, with no text involved: what the text must mean afterwards. `editYaml` compares what
 * it wrote with this.
 */
import { MusterError } from '../errors.ts'
import { AGE_TAG, MAX_DEPTH } from './limits.ts'
import type { ListTree, MapEntry, MapTree, ScalarTree, Tree } from './tree.ts'

type Path = readonly string[]

export type YamlEdit =
  /** Creates the maps on the way that are missing. A map that replaces a map keeps what both have alike. */
  | { readonly op: 'set'; readonly path: Path; readonly value: unknown; readonly tag?: string }
  /** What is not there is deleted already. A map that loses its last key stays as `{}`, except the whole file. */
  | { readonly op: 'delete'; readonly path: Path }
  /** Keeps the value, its comments and its place among the others. */
  | { readonly op: 'rename'; readonly path: Path; readonly to: string }

/** One step of an edit, its value checked. */
export type Change =
  | { readonly op: 'set'; readonly path: Path; readonly value: Tree }
  | { readonly op: 'delete'; readonly path: Path }
  | { readonly op: 'rename'; readonly path: Path; readonly to: string }

const NOWHERE = { line: 0, column: 0 }
export const EMPTY_MAP: MapTree = { kind: 'map', entries: new Map(), ...NOWHERE }

/** The steps of an edit: setting a map over a map becomes changes of single keys, so that comments inside survive. */
export function changesOf(edit: YamlEdit, tree: Tree | undefined): Change[] {
  if (edit.path.length === 0) throw new MusterError('EDIT_INVALID', 'the path of an edit is empty')
  return edit.op === 'set' ? merge(edit.path, treeAt(tree, edit.path), treeOf(edit.value, edit.tag)) : [edit]
}

function merge(path: Path, old: Tree | undefined, value: Tree): Change[] {
  if (old?.kind !== 'map' || value.kind !== 'map' || old.entries.size === 0 || value.entries.size === 0)
    return [{ op: 'set', path, value }]
  const changes: Change[] = []
  for (const [key, entry] of value.entries)
    changes.push(...merge([...path, key], old.entries.get(key)?.value, entry.value))
  for (const key of old.entries.keys())
    if (!value.entries.has(key)) changes.push({ op: 'delete', path: [...path, key] })
  return changes
}

function treeAt(tree: Tree | undefined, path: Path): Tree | undefined {
  let at = tree
  for (const key of path) at = at?.kind === 'map' ? at.entries.get(key)?.value : undefined
  return at
}

/** A plain value of JavaScript as a tree. */
export function treeOf(value: unknown, tag?: string, depth = 0): Tree {
  if (tag !== undefined) return taggedTree(value, tag)
  // An object that holds itself would never end.
  if (depth > MAX_DEPTH) throw new MusterError('EDIT_INVALID', `the value is nested more than ${MAX_DEPTH} levels deep`)
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return { kind: 'scalar', value, ...NOWHERE }
  if (Array.isArray(value)) return listOf(value, depth)
  if (typeof value === 'object') return mapOf(value, depth)
  throw new MusterError('EDIT_INVALID', `a value of type ${typeof value} cannot be written to a YAML file`)
}

function taggedTree(value: unknown, tag: string): ScalarTree {
  if (tag !== AGE_TAG) throw new MusterError('EDIT_INVALID', `the tag ${tag} is not known; only ${AGE_TAG} is`)
  if (typeof value !== 'string') throw new MusterError('EDIT_INVALID', `${AGE_TAG} marks a string`)
  return { kind: 'scalar', value, tag, ...NOWHERE }
}

const listOf = (values: readonly unknown[], depth: number): ListTree => ({
  kind: 'list',
  items: values.map(value => treeOf(value, undefined, depth + 1)),
  ...NOWHERE,
})

/** As in JSON, what is undefined is left out. */
function mapOf(value: object, depth: number): MapTree {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null)
    throw new MusterError('EDIT_INVALID', `a ${value.constructor.name} cannot be written to a YAML file`)
  const entries = Object.entries(value)
    .filter(([, child]) => child !== undefined)
    .map(([key, child]): [string, MapEntry] => [key, { value: treeOf(child, undefined, depth + 1), ...NOWHERE }])
  return { kind: 'map', entries: new Map(entries), ...NOWHERE }
}

/** `value` below the maps that `path` names: nest(['a', 'b'], 1) is { a: { b: 1 } }. */
export function nest(path: Path, value: Tree): Tree {
  return path.reduceRight<Tree>(
    (inner, key) => ({ kind: 'map', entries: new Map([[key, { value: inner, ...NOWHERE }]]), ...NOWHERE }),
    value,
  )
}

/** The tree after the change; the same tree when it changes nothing. */
export function changed(tree: Tree | undefined, change: Change, depth = 0): Tree | undefined {
  const { path } = change
  const key = path[depth] ?? ''
  const map = mapOnTheWay(tree, path.slice(0, depth))
  const entry = map.entries.get(key)
  if (entry === undefined && change.op === 'delete') return tree
  if (entry === undefined && change.op === 'rename')
    throw new MusterError('EDIT_INVALID', `there is no ${named(path.slice(0, depth + 1))} to rename`)

  const entries = new Map(map.entries)
  if (depth + 1 < path.length) {
    const value = changed(entry?.value, change, depth + 1)
    if (value === undefined || value === entry?.value) return tree
    entries.set(key, { ...NOWHERE, ...entry, value })
  } else if (change.op === 'set') {
    if (entry !== undefined && sameTree(entry.value, change.value)) return tree
    entries.set(key, { ...NOWHERE, ...entry, value: change.value })
  } else if (change.op === 'delete') {
    entries.delete(key)
  } else {
    return change.to === key ? tree : { ...map, entries: renamed(entries, change) }
  }
  return { ...map, entries }
}

/** The map at a path; nothing, and a key with nothing behind it, is a map without keys. */
function mapOnTheWay(tree: Tree | undefined, path: Path): MapTree {
  if (tree === undefined || isNull(tree)) return EMPTY_MAP
  if (tree.kind === 'map') return tree
  const what = tree.kind === 'list' ? 'a list' : 'a single value'
  throw new MusterError('EDIT_INVALID', `${path.length === 0 ? 'the file' : named(path)} is ${what}, not a map`)
}

export const isNull = (tree: Tree): boolean => tree.kind === 'scalar' && tree.value === null

function renamed(
  entries: ReadonlyMap<string, MapEntry>,
  { path, to }: Change & { op: 'rename' },
): Map<string, MapEntry> {
  if (entries.has(to)) throw new MusterError('EDIT_INVALID', `there is a ${named([...path.slice(0, -1), to])} already`)
  return new Map([...entries].map(([key, entry]) => [key === path.at(-1) ? to : key, entry]))
}

const named = (path: Path): string => path.join('.')

/** Whether two trees mean the same: values, tags and the order of keys, wherever they stand. */
export function sameTree(a: Tree | undefined, b: Tree | undefined): boolean {
  if (a === undefined || b === undefined) return isNothing(a) && isNothing(b)
  if (a.kind === 'scalar') return b.kind === 'scalar' && Object.is(a.value, b.value) && a.tag === b.tag
  if (a.kind === 'list')
    return (
      b.kind === 'list' && a.items.length === b.items.length && a.items.every((item, i) => sameTree(item, b.items[i]))
    )
  if (b.kind !== 'map' || a.entries.size !== b.entries.size) return false
  const others = [...b.entries]
  return [...a.entries].every(([key, { value }], i) => others[i]?.[0] === key && sameTree(value, others[i][1].value))
}

/** A file without keys is an empty file. */
const isNothing = (tree: Tree | undefined): boolean =>
  tree === undefined || (tree.kind === 'map' && tree.entries.size === 0)
