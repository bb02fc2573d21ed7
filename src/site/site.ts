import { type GroupResolver, NodeSet, numbersOf, parseNodeSet } from '../lib/nodeset/index.ts'
import { MusterError, messageOf } from '../lib/errors.ts'
import { didYouMean } from '../lib/suggest.ts'
import { createRenderer } from '../lib/template.ts'
import { type NodeFileEntry, type SiteFile, type SiteFiles, groupList, readSiteFiles } from './files.ts'
import { type Branch, LayerMerger } from './layers.ts'
import type { Plain } from './paths.ts'
import type { Problem } from './problems.ts'
import { Resolver } from './resolve.ts'
import { Network } from './schema.ts'
import type { SiteSource } from './source.ts'
import { plainOf, treeAt } from './validate.ts'

/** A site: who its nodes are, and on demand what each of them gets. */
export interface Site {
  readonly name: string
  readonly files: SiteFiles
  readonly networks: ReadonlyMap<string, Network>
  readonly recipients: readonly string[]
  readonly groups: ReadonlyMap<string, SiteGroup>
  readonly clusters: ReadonlyMap<string, NodeSet>
  /** In the order of the files. */
  readonly nodes: ReadonlyMap<string, SiteNode>
  readonly sets: GroupResolver
  /** What is wrong with how it hangs together: unknown groups, circles, nodes in no cluster or in two. */
  readonly problems: readonly Problem[]
  layersOf(node: SiteNode): Branch
  resolve(node: SiteNode): ResolvedNode
  /** The tools that remember earlier work, for the next version of this site. */
  readonly memory: SiteMemory
}

export interface SiteGroup {
  readonly name: string
  readonly file: SiteFile
  /** The groups it builds on, lowest first, itself last. */
  readonly lineage: readonly string[]
}

export interface SiteNode {
  readonly name: string
  readonly cluster: string
  readonly groups: readonly string[]
  readonly entries: readonly NodeFileEntry[]
}

/** What a node is to get: the value stored as desired state. */
export interface ResolvedNode {
  readonly value: Plain
  readonly problems: readonly Problem[]
}

interface SiteMemory {
  readonly merger: LayerMerger
  readonly resolver: Resolver
  readonly resolved: WeakMap<Branch, Map<string, Remembered>>
}

interface Remembered {
  /** What else went into the values, besides the layers. */
  readonly key: string
  readonly blobs: SiteFiles['blobs']
  readonly node: ResolvedNode
}

export async function openSite(source: SiteSource, previous?: Site): Promise<Site> {
  return buildSite(await readSiteFiles(source, previous?.files), previous?.memory)
}

function buildSite(files: SiteFiles, known?: SiteMemory): Site {
  const problems: Problem[] = []
  const main = files.files.find(file => file.kind === 'site')
  const name = textAt(main, 'site') ?? 'site'
  const groups = readGroups(files, problems)
  const nodes = readNodes(files, groups, name, problems)
  const clusters = readClusters(files, nodes, groups, problems)
  const memory = known ?? {
    merger: new LayerMerger(),
    resolver: new Resolver(createRenderer()),
    resolved: new WeakMap(),
  }
  const groupLayers = new Map([...groups].map(([group, { file }]) => [group, file.layers]))
  const clusterLayers = new Map(
    files.files.filter(file => file.kind === 'cluster').map(file => [file.name, file.layers]),
  )
  const layersOf = (node: SiteNode): Branch =>
    memory.merger.merge([
      ...(main?.layers ?? []),
      ...(clusterLayers.get(node.cluster) ?? []),
      ...node.groups.flatMap(group => groupLayers.get(group) ?? []),
      ...node.entries.map(entry => entry.layer),
    ])
  return {
    name,
    files,
    groups,
    clusters,
    nodes,
    problems,
    memory,
    layersOf,
    networks: readNetworks(main),
    recipients: readRecipients(main),
    sets: groupResolver(nodes, groups, clusters),
    resolve: node => resolveNode(memory, files, name, node, layersOf(node)),
  }
}

function resolveNode(
  memory: SiteMemory,
  { blobs }: SiteFiles,
  site: string,
  node: SiteNode,
  root: Branch,
): ResolvedNode {
  const key = [site, node.cluster, ...node.groups].join(' ')
  let byNode = memory.resolved.get(root)
  if (byNode === undefined) memory.resolved.set(root, (byNode = new Map()))
  const known = byNode.get(node.name)
  if (known !== undefined && known.key === key && known.blobs === blobs) return known.node
  const numbers = numbersOf(node.name)
  const { name, cluster, groups } = node
  const { value, problems } = memory.resolver.resolve(root, {
    name,
    cluster,
    groups,
    site,
    numbers,
    index: numbers.at(-1),
  })
  const resolved = { value: withBlobs({ cluster, groups, ...value }, blobs), problems }
  byNode.set(name, { key, blobs, node: resolved })
  return resolved
}

/** Adds to every file of the node the identity of its source, so that a change of content is a change of the node. */
function withBlobs(value: Plain, blobs: SiteFiles['blobs']): Plain {
  const files = value['files'] as Readonly<Record<string, string | { readonly source: string }>> | undefined
  if (files === undefined) return value
  const entries = Object.entries(files).map(([target, file]) => {
    const settings = typeof file === 'string' ? { source: file } : file
    return [target, { ...settings, blob: blobs.get(settings.source) }]
  })
  return { ...value, files: Object.fromEntries(entries) }
}

export function nodeNamed(site: Site, name: string): SiteNode {
  const node = site.nodes.get(name)
  if (node === undefined)
    throw new MusterError('NODE_UNKNOWN', `no node is named ${name}${didYouMean(name, site.nodes.keys())}`)
  return node
}

function readGroups(files: SiteFiles, problems: Problem[]): Map<string, SiteGroup> {
  const byName = new Map(files.files.filter(file => file.kind === 'group').map(file => [file.name, file]))
  const lineages = new Map<string, readonly string[]>()
  const lineageOf = (name: string, path: readonly string[]): readonly string[] => {
    const known = lineages.get(name)
    if (known !== undefined) return known
    const file = byName.get(name)
    const parents = groupList(file?.tree)?.names ?? []
    const lineage: string[] = []
    for (const { name: parent, line, column } of parents) {
      const at = { file: file?.path ?? '', line, column, path: 'groups' }
      if (!byName.has(parent))
        problems.push({ ...at, message: `there is no group ${parent}${didYouMean(parent, byName.keys())}` })
      else if (parent === name || path.includes(parent)) {
        const circle = [...path.slice(path.indexOf(parent)), name, parent]
        problems.push({
          ...at,
          message: `groups build on each other in a circle: ${(parent === name ? [name, name] : circle).join(' → ')}`,
        })
      } else
        for (const ancestor of lineageOf(parent, [...path, name]))
          if (!lineage.includes(ancestor)) lineage.push(ancestor)
    }
    lineage.push(name)
    lineages.set(name, lineage)
    return lineage
  }
  return new Map([...byName].map(([name, file]) => [name, { name, file, lineage: lineageOf(name, []) }]))
}

/** Its cluster is known last: the members of a cluster may be said by group. */
type NodeDraft = SiteNode & { cluster: string }

function readNodes(
  files: SiteFiles,
  groups: ReadonlyMap<string, SiteGroup>,
  cluster: string,
  problems: Problem[],
): Map<string, NodeDraft> {
  const entriesOf = new Map<string, NodeFileEntry[]>()
  for (const file of files.files) {
    for (const entry of file.entries) {
      reportUnknownGroups(entry, groups, problems)
      for (const name of entry.names) {
        const list = entriesOf.get(name)
        if (list === undefined) entriesOf.set(name, [entry])
        else list.push(entry)
      }
    }
  }
  const lineages = new Map<string, readonly string[]>()
  const nodes = new Map<string, NodeDraft>()
  for (const [name, entries] of entriesOf) {
    const listed = listedGroups(entries)
    const key = listed.join(' ')
    let all = lineages.get(key)
    if (all === undefined)
      lineages.set(key, (all = [...new Set(listed.flatMap(group => groups.get(group)?.lineage ?? []))]))
    nodes.set(name, { name, cluster, groups: all, entries })
  }
  return nodes
}

/** The groups a node names, later entries replacing or adding to those of earlier ones. */
function listedGroups(entries: readonly NodeFileEntry[]): readonly string[] {
  let listed: readonly string[] = []
  for (const { groups } of entries) {
    if (groups === undefined) continue
    const own = groups.names.map(group => group.name)
    listed = groups.appends ? [...listed, ...own] : own
  }
  return listed
}

/** What is no name at all is reported by the schema. */
const GROUP_NAME = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/

function reportUnknownGroups(entry: NodeFileEntry, groups: ReadonlyMap<string, SiteGroup>, problems: Problem[]): void {
  for (const { name, line, column } of entry.groups?.names ?? []) {
    if (groups.has(name) || !GROUP_NAME.test(name)) continue
    const path = `${entry.key}.groups`
    problems.push({
      file: entry.layer.file,
      line,
      column,
      path,
      message: `there is no group ${name}${didYouMean(name, groups.keys())}`,
    })
  }
}

function readClusters(
  files: SiteFiles,
  nodes: ReadonlyMap<string, NodeDraft>,
  groups: ReadonlyMap<string, SiteGroup>,
  problems: Problem[],
): Map<string, NodeSet> {
  const clusters = new Map<string, NodeSet>()
  const owner = new Map<string, string>()
  const sets = groupResolver(nodes, groups, clusters)
  const clusterFiles = files.files.filter(file => file.kind === 'cluster')
  for (const file of clusterFiles) {
    const entry = file.tree?.entries.get('nodes')
    if (entry?.value.kind !== 'scalar' || typeof entry.value.value !== 'string') continue
    const at = { file: file.path, line: entry.value.line, column: entry.value.column, path: 'nodes' }
    try {
      const set = parseNodeSet(entry.value.value, { groups: sets })
      const unknown = [...set].filter(name => !nodes.has(name))
      if (unknown.length > 0)
        problems.push({ ...at, message: `${NodeSet.of(unknown)}: no such node in nodes.yaml or nodes/` })
      const taken = [...set].filter(name => owner.has(name))
      const [first] = taken
      if (first !== undefined)
        problems.push({ ...at, message: `${NodeSet.of(taken)}: in cluster ${owner.get(first)} already` })
      const own = set.difference(NodeSet.of([...unknown, ...taken]))
      for (const name of own) {
        owner.set(name, file.name)
        const node = nodes.get(name)
        if (node !== undefined) node.cluster = file.name
      }
      clusters.set(file.name, own)
    } catch (error) {
      problems.push({ ...at, message: messageOf(error) })
    }
  }
  // Whoever stands in a cluster that cannot be read is not homeless.
  const allRead = clusterFiles.every(file => clusters.has(file.name))
  const homeless =
    clusterFiles.length === 0 || !allRead ? [] : [...nodes.values()].filter(node => !owner.has(node.name))
  for (const node of homeless) {
    const { layer, line, column } = node.entries[0] as NodeFileEntry
    problems.push({
      file: layer.file,
      line,
      column,
      nodes: [node.name],
      message: 'is in no cluster: add it to the nodes of one in clusters/',
    })
  }
  return clusters
}

/** How @compute, @cluster:prod and @all become nodes. */
function groupResolver(
  nodes: ReadonlyMap<string, NodeDraft>,
  groups: ReadonlyMap<string, SiteGroup>,
  clusters: ReadonlyMap<string, NodeSet>,
): GroupResolver {
  let members: Map<string, string[]> | undefined
  const build = (): Map<string, string[]> => {
    const found = new Map<string, string[]>([...groups.keys()].map(group => [group, []]))
    for (const node of nodes.values()) for (const group of node.groups) found.get(group)?.push(node.name)
    return found
  }
  return {
    members: group =>
      group.startsWith('cluster:') ? clusters.get(group.slice('cluster:'.length)) : (members ??= build()).get(group),
    all: () => nodes.keys(),
  }
}

function readNetworks(main: SiteFile | undefined): Map<string, Network> {
  const tree = main?.tree?.entries.get('networks')?.value
  if (tree?.kind !== 'map') return new Map()
  return new Map(
    [...tree.entries].flatMap(([name, entry]) => {
      const network = Network.safeParse(plainOf(entry.value))
      return network.success ? [[name, network.data] as const] : []
    }),
  )
}

function readRecipients(main: SiteFile | undefined): string[] {
  const secrets = main?.tree?.entries.get('secrets')?.value
  const list = treeAt(secrets, ['recipients'])
  return list?.kind === 'list' ? list.items.flatMap(item => (item.kind === 'scalar' ? String(item.value) : [])) : []
}

function textAt(file: SiteFile | undefined, key: string): string | undefined {
  const value = file?.tree?.entries.get(key)?.value
  return value?.kind === 'scalar' && typeof value.value === 'string' ? value.value : undefined
}
