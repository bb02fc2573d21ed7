import { MusterError } from '../lib/errors.ts'
import { didYouMean } from '../lib/suggest.ts'
import { type Leaf, type Origin, type Value, leavesOf, valueAt } from './layers.ts'
import { get, hideSecrets, parsePath } from './paths.ts'
import type { SiteNode } from './members.ts'
import { type Site, nodeNamed } from './site.ts'
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
  if (keys === undefined) throw new MusterError('PATH_UNKNOWN', whyAbsent(site, node, path))
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
  if (only !== 'groups') {
    // Without clusters the site is one, under its own name.
    const file = clusterFile ?? site.files.files.find(one => one.kind === 'site')
    const place = file?.tree?.entries.get(clusterFile === undefined ? 'site' : 'nodes')
    const from = {
      layer: `cluster ${node.cluster}`,
      file: file?.path ?? 'site.yaml',
      line: place?.line ?? 1,
      column: place?.column ?? 1,
    }
    found.push({ path: 'cluster', value: node.cluster, from, overrides: [], appendsTo: [] })
  }
  if (only !== 'cluster') found.push(...explainGroups(node))
  return found
}

function explainGroups(node: SiteNode): Explanation[] {
  const said = node.entries.flatMap(({ layer, groups }) => {
    if (groups === undefined) return []
    const { line, column, appends, names } = groups
    return [{ layer: layer.name, file: layer.file, line, column, appends, value: names.map(group => group.name) }]
  })
  const last = said.at(-1)
  if (last === undefined) return []
  const source = ({ layer, file, line, column }: Source): Source => ({ layer, file, line, column })
  const appendsTo: (Source & { value: unknown })[] = []
  for (let at = said.length - 1; said[at]?.appends === true && at > 0; at--) {
    const below = said[at - 1]
    if (below !== undefined) appendsTo.push({ ...source(below), value: below.value })
  }
  return [{ path: 'groups', value: node.groups, from: source(last), overrides: [], appendsTo }]
}

/** Taken away by a null, or never there. */
function whyAbsent(site: Site, node: SiteNode, path: string): string {
  const known = new Map<string, Leaf | undefined>([
    ['cluster', undefined],
    ['groups', undefined],
  ])
  for (const [keys, leaf] of leavesOf(site.layersOf(node))) {
    for (let length = 1; length < keys.length; length++) known.set(keys.slice(0, length).join('.'), undefined)
    known.set(keys.join('.'), leaf)
  }
  const gone = known.get(path)
  if (gone !== undefined)
    return `${node.name} has no value ${path}: ${gone.origin.layer.file}:${gone.origin.line} takes it away`
  return `${node.name} has no value ${path}${didYouMean(path, known.keys())}`
}

/** file:line of a node's value, or of the nearest thing above it. */
export function locate(site: Site, name: string, path: readonly string[]): string | undefined {
  const node = site.nodes.get(name)
  if (node === undefined) return undefined
  const root = site.layersOf(node)
  for (let length = path.length; length > 0; length--) {
    const origin = valueAt(root, path.slice(0, length))?.origin
    if (origin !== undefined) return `${origin.layer.file}:${origin.line}`
  }
  return undefined
}
