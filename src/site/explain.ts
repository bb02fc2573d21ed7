import { MusterError } from '../lib/errors.ts'
import { didYouMean } from '../lib/suggest.ts'
import { type Leaf, type Origin, type Value, leavesOf, valueAt } from './layers.ts'
import { get, hideSecrets, parsePath } from './paths.ts'
import { type Site, type SiteNode, nodeNamed } from './site.ts'
import { plainOf } from './validate.ts'

/** One value of a node: what it is, where it was written, and what it replaced on the way. */
export interface Explanation {
  readonly path: string
  readonly value: unknown
  /** What stands in the file, when that is a template. */
  readonly written?: unknown
  readonly from: Source
  /** Nearest first. */
  readonly overrides: readonly (Source & { readonly value: unknown })[]
  readonly appendsTo: readonly (Source & { readonly value: unknown })[]
}

export interface Source {
  readonly layer: string
  readonly file: string
  readonly line: number
  readonly column: number
}

/** All values of a node, or those at and below a path. */
export function explainNode(site: Site, name: string, path = ''): Explanation[] {
  const node = nodeNamed(site, name)
  const { value } = site.resolve(node)
  const keys = parsePath(value, path)
  if (keys === undefined) {
    throw new MusterError('PATH_UNKNOWN', `${name} has no value ${path}${didYouMean(path, allPaths(site, node))}`)
  }
  const [head] = keys
  const membership =
    head === undefined || head === 'groups' || head === 'cluster' ? explainMembership(site, node, head) : []
  const root = site.layersOf(node)
  const start = leafAbove(root, keys)
  const leaves = start === undefined ? [] : [...leavesOf(start.value, start.path)]
  return [
    ...membership,
    ...leaves.filter(([at]) => get(value, at) !== undefined).map(([at, leaf]) => explainLeaf(at, leaf, get(value, at))),
  ]
}

/** `files./etc/motd.source` is part of the value written at `files./etc/motd`. */
function leafAbove(root: Value, keys: readonly string[]): { value: Value; path: readonly string[] } | undefined {
  for (let length = keys.length; length >= 0; length--) {
    const value = valueAt(root, keys.slice(0, length))
    if (value !== undefined && (length === keys.length || value.kind === 'leaf'))
      return { value, path: keys.slice(0, length) }
  }
  return undefined
}

function explainLeaf(path: readonly string[], leaf: Leaf, value: unknown): Explanation {
  const written = hideSecrets(plainOf(leaf.tree))
  const shown = hideSecrets(value)
  const isTemplated = JSON.stringify(written).includes('{{') || JSON.stringify(written).includes('{%')
  return {
    path: path.join('.'),
    value: shown,
    ...(isTemplated && { written }),
    from: sourceOf(leaf.origin),
    overrides: chain(leaf.overrides, next => (next.kind === 'leaf' ? (next.overrides ?? next.appendsTo) : undefined)),
    appendsTo: chain(leaf.appendsTo, next => (next.kind === 'leaf' ? next.appendsTo : undefined)),
  }
}

function chain(first: Value | undefined, next: (value: Value) => Value | undefined): (Source & { value: unknown })[] {
  const found: (Source & { value: unknown })[] = []
  for (let value = first; value !== undefined; value = next(value)) {
    if (value.origin === undefined) continue
    found.push({
      ...sourceOf(value.origin),
      value: value.kind === 'leaf' ? hideSecrets(plainOf(value.tree)) : {},
    })
  }
  return found
}

const sourceOf = ({ layer, line, column }: Origin): Source => ({ layer: layer.name, file: layer.file, line, column })

/** Cluster and groups are said by other means than layers. */
function explainMembership(site: Site, node: SiteNode, only: string | undefined): Explanation[] {
  const found: Explanation[] = []
  const clusterFile = site.files.files.find(file => file.kind === 'cluster' && file.name === node.cluster)
  const place = clusterFile?.tree?.entries.get('nodes')
  if (only !== 'groups') {
    const from = {
      layer: `cluster ${node.cluster}`,
      file: clusterFile?.path ?? 'site.yaml',
      line: place?.line ?? 1,
      column: place?.column ?? 1,
    }
    found.push({ path: 'cluster', value: node.cluster, from, overrides: [], appendsTo: [] })
  }
  const entries = node.entries.filter(entry => entry.groups !== undefined)
  const last = entries.at(-1)
  if (only !== 'cluster' && last?.groups !== undefined) {
    const { line, column } = last.groups
    found.push({
      path: 'groups',
      value: node.groups,
      from: { layer: last.layer.name, file: last.layer.file, line, column },
      overrides: [],
      appendsTo: [],
    })
  }
  return found
}

function allPaths(site: Site, node: SiteNode): string[] {
  return [...leavesOf(site.layersOf(node))].map(([path]) => path.join('.'))
}
