import type { ListTree, MapTree, Place, ScalarTree, Tree } from '../lib/yaml/tree.ts'
import { FILE_KINDS } from './file-kinds.ts'
import { splitKey } from './validate.ts'

/**
 * Layering: maps merge, scalars and lists replace, `key+:` appends, `key: null` takes away.
 * Nothing is copied that did not change, and every value keeps where it came from and what it replaced:
 *
 *     site.yaml:9            boot: { image: base }        ┐
 *     groups/gpu.yaml:3      boot: { image: gpu }         ├─▶ boot.image = gpu, from groups/gpu.yaml:3,
 *                                                         ┘    overrides base of site.yaml:9
 */
export interface Layer {
  /** 'defaults', 'cluster prod', 'group gpu', 'node n[001-128]' */
  readonly name: string
  readonly file: string
  readonly tree: MapTree
}

export interface Origin extends Place {
  readonly layer: Layer
}

export interface Leaf {
  readonly kind: 'leaf'
  readonly tree: ScalarTree | ListTree
  readonly origin: Origin
  readonly overrides?: Value
  /** The list this one is appended to. */
  readonly appendsTo?: Leaf
}

export interface Branch {
  readonly kind: 'branch'
  readonly entries: ReadonlyMap<string, Value>
  readonly origin?: Origin
}

export type Value = Leaf | Branch

export const EMPTY: Branch = { kind: 'branch', entries: new Map() }

/** Keys that say who belongs where; they are not values of a node. */
const NOT_LAYERED: Readonly<Record<string, ReadonlySet<string>>> = {
  cluster: new Set(['nodes']),
  group: new Set(['groups', 'groups+']),
  node: new Set(['groups', 'groups+']),
}

/** Remembers results by identity: applying the same layers again, also for the next version of a site, costs nothing. */
export class LayerMerger {
  readonly #known = new WeakMap<Branch, WeakMap<Layer, Branch>>()

  /** Lowest layer first. */
  merge(layers: Iterable<Layer>): Branch {
    let result = EMPTY
    for (const layer of layers) result = this.#add(result, layer)
    return result
  }

  #add(lower: Branch, layer: Layer): Branch {
    let byLayer = this.#known.get(lower)
    if (byLayer === undefined) this.#known.set(lower, (byLayer = new WeakMap()))
    let merged = byLayer.get(layer)
    if (merged === undefined)
      byLayer.set(layer, (merged = mergeMap(lower, layer.tree, layer, [], NOT_LAYERED[layer.name.split(' ')[0] ?? ''])))
    return merged
  }
}

function mergeMap(
  lower: Branch,
  upper: MapTree,
  layer: Layer,
  path: readonly string[],
  ignored?: ReadonlySet<string>,
): Branch {
  const entries = new Map(lower.entries)
  for (const [key, { value: tree, line, column }] of upper.entries) {
    if (ignored?.has(key)) continue
    const { name, appends } = splitKey(key)
    const below = entries.get(name)
    const origin = { layer, line, column }
    if (tree.kind === 'map') {
      const isFile = path.length === 1 && path[0] === 'files'
      const isKept = below?.kind === 'branch' && !(isFile && replaces(tree, below))
      entries.set(name, mergeMap(isKept ? below : { ...EMPTY, origin }, tree, layer, [...path, name]))
    } else if (appends && below?.kind === 'leaf' && below.tree.kind === 'list') {
      entries.set(name, { kind: 'leaf', tree, origin, appendsTo: below })
    } else {
      entries.set(name, { kind: 'leaf', tree, origin, ...(below !== undefined && { overrides: below }) })
    }
  }
  return {
    kind: 'branch',
    entries,
    ...(lower.origin ? { origin: lower.origin } : { origin: { layer, line: upper.line, column: upper.column } }),
  }
}

/**
 * What says where a file comes from replaces whatever said it in another way, with its mode and all: `absent: true` of a group
 * goes with no `source` of the site.
 */
function replaces(upper: MapTree, below: Branch): boolean {
  const said = FILE_KINDS.filter(kind => isSaid(upper.entries.get(kind)?.value))
  return said.length > 0 && FILE_KINDS.some(kind => below.entries.has(kind) && !said.includes(kind))
}

const isSaid = (tree: Tree | undefined): boolean =>
  tree !== undefined && !(tree.kind === 'scalar' && (tree.value === null || tree.value === false))

export function valueAt(root: Value, path: readonly string[]): Value | undefined {
  let value: Value | undefined = root
  for (const key of path) {
    if (value?.kind !== 'branch') return undefined
    value = value.entries.get(key)
  }
  return value
}

/** Every leaf below a value with its path, in the order the layers brought them. */
export function* leavesOf(
  value: Value,
  path: readonly string[] = [],
): Generator<readonly [path: readonly string[], leaf: Leaf]> {
  if (value.kind === 'leaf') yield [path, value]
  else for (const [key, child] of value.entries) yield* leavesOf(child, [...path, key])
}
