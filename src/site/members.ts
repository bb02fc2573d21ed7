import { messageOf } from '../lib/errors.ts'
import { type GroupResolver, NodeSet, parseNodeSet } from '../lib/nodeset/index.ts'
import { didYouMean } from '../lib/suggest.ts'
import { type NodeFileEntry, type SiteFile, type SiteFiles, groupList } from './files.ts'
import type { Problem } from './problems.ts'
import { NAME } from './values.ts'

/** Who belongs where: the groups and what they build on, the nodes and their groups, the clusters and their nodes. */
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

export function readGroups(files: SiteFiles, problems: Problem[]): Map<string, SiteGroup> {
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

export function readNodes(
  files: SiteFiles,
  groups: ReadonlyMap<string, SiteGroup>,
  cluster: string,
  problems: Problem[],
  made: readonly NodeFileEntry[] = [],
): Map<string, NodeDraft> {
  const nodes = new Map<string, NodeDraft>()
  for (const entry of [...made, ...files.files.flatMap(file => file.entries)]) {
    reportUnknownGroups(entry, groups, problems)
    // Most nodes have one entry, and share it with many: what follows from it is worked out once.
    const alone = { entries: [entry], groups: groupsOf([entry], groups) }
    for (const name of entry.names) {
      const before = nodes.get(name)
      const own = before === undefined ? alone : withEntry(before, entry, groups)
      nodes.set(name, { name, cluster, groups: own.groups, entries: own.entries })
    }
  }
  return nodes
}

function withEntry(
  node: SiteNode,
  entry: NodeFileEntry,
  groups: ReadonlyMap<string, SiteGroup>,
): Pick<SiteNode, 'groups' | 'entries'> {
  const entries = [...node.entries, entry]
  return { entries, groups: entry.groups === undefined ? node.groups : groupsOf(entries, groups) }
}

const groupsOf = (entries: readonly NodeFileEntry[], groups: ReadonlyMap<string, SiteGroup>): string[] => [
  ...new Set(listedGroups(entries).flatMap(group => groups.get(group)?.lineage ?? [])),
]

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

function reportUnknownGroups(entry: NodeFileEntry, groups: ReadonlyMap<string, SiteGroup>, problems: Problem[]): void {
  for (const { name, line, column } of entry.groups?.names ?? []) {
    // What is no name at all is reported by the schema.
    if (groups.has(name) || !NAME.test(name)) continue
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

export function readClusters(
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
export function groupResolver(
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
