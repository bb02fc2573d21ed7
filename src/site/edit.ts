import { MusterError } from '../lib/errors.ts'
import { type GroupResolver, NodeSet, fold, parseNodeSet } from '../lib/nodeset/index.ts'
import type { YamlEdit } from '../lib/yaml/edit.ts'
import type { MapTree } from '../lib/yaml/tree.ts'
import { type NodeFileEntry, type SiteFile, roleOf } from './files.ts'
import { NAME } from './values.ts'
import type { Site } from './site.ts'
import { plainOf, splitKey, treeAt } from './validate.ts'

/**
 * Changes to a site, as edits of its files. Nothing here touches a file: workspace.ts does, after it has checked what
 * the site would become.
 */
export type FileEdits = ReadonlyMap<string, readonly YamlEdit[] | null>

/** Values by dotted path; `groups+` appends; null takes the key out of this layer. */
export type Settings = Readonly<Record<string, unknown>>

/** Set boot.image, boot.args of n[001-016] */
export const settingMessage = (settings: Settings, what: string): string =>
  `Set ${Object.keys(settings)
    .map(path => path.replace(/\+$/, ''))
    .join(', ')} of ${what}`

export function addNodes(
  site: Site,
  nodes: string,
  settings: Settings,
  options: { file?: string | undefined; cluster?: string | undefined } = {},
): FileEdits {
  const set = parseNodeSet(nodes)
  if (set.size === 0) throw new MusterError('EDIT_INVALID', `${JSON.stringify(nodes)} names no node`)
  const existing = set.intersection(NodeSet.of(site.nodes.keys()))
  if (existing.size > 0)
    throw new MusterError('NODE_EXISTS', `${existing} ${existing.size === 1 ? 'exists' : 'exist'} already`)
  const file = options.file ?? lastNodesFile(site)?.path ?? 'nodes.yaml'
  if (roleOf(file)?.kind !== 'nodes')
    throw new MusterError('EDIT_INVALID', `${file} is no place for nodes: choose nodes.yaml or nodes/NAME.yaml`)
  const clusters = site.files.files.filter(candidate => candidate.kind === 'cluster')
  if (
    clusters.length > 0 &&
    options.cluster === undefined &&
    clusters.every(cluster => !/[@*?]/.test(clusterNodes(cluster)))
  ) {
    throw new MusterError('EDIT_INVALID', 'say which cluster they are in', {
      hint: `--cluster ${clusters.map(cluster => cluster.name).join(' or ')}`,
    })
  }
  const edits = settingEdits(settings, [String(set)], undefined)
  if (edits.length === 0) edits.push({ op: 'set', path: [String(set)], value: {} })
  return new Map([[file, edits], ...(options.cluster === undefined ? [] : [joinCluster(site, options.cluster, set)])])
}

function joinCluster(site: Site, cluster: string, set: NodeSet): [string, YamlEdit[]] {
  const file = site.files.files.find(candidate => candidate.kind === 'cluster' && candidate.name === cluster)
  if (file === undefined)
    throw new MusterError('EDIT_INVALID', `there is no cluster ${cluster} (clusters/${cluster}.yaml)`)
  const text = clusterNodes(file)
  const joined = /[@!&^*?]/.test(text) ? `${text},${set}` : String(parseNodeSet(text).union(set))
  return [file.path, [{ op: 'set', path: ['nodes'], value: joined }]]
}

/**
 * Goes into the entry for exactly these nodes, where what later entries say of the same values gives way; or, when such an
 * entry speaks of other nodes as well, into a new one behind all others, which therefore wins.
 */
export function setNodes(site: Site, nodes: string, settings: Settings): FileEdits {
  const set = knownNodes(site, nodes)
  const all = site.files.files.flatMap(file => file.entries.map(entry => ({ file, entry })))
  const at = all.findLastIndex(
    ({ entry }) => entry.names.length === set.size && entry.names.every(name => set.has(name)),
  )
  const later = at < 0 ? [] : all.slice(at + 1).filter(({ entry }) => entry.names.some(name => set.has(name)))
  const hiding = later.filter(({ entry }) => overridesIn(entry, settings).length > 0)
  const exact = hiding.every(({ entry }) => entry.names.every(name => set.has(name))) ? all[at] : undefined
  if (exact === undefined) {
    const file = lastNodesFile(site)
    if (file === undefined) throw new MusterError('NODE_UNKNOWN', 'the site has no nodes yet')
    const key = freeKey([...set], new Set(file.entries.map(entry => entry.key)))
    return new Map([[file.path, settingEdits(settings, [key], undefined)]])
  }
  const edits = new Map<string, YamlEdit[]>()
  const add = (file: string, more: readonly YamlEdit[]): void =>
    void edits.set(file, [...(edits.get(file) ?? []), ...more])
  add(exact.file.path, settingEdits(settings, [exact.entry.key], exact.entry.layer.tree))
  for (const { file, entry } of hiding) {
    add(
      file.path,
      overridesIn(entry, settings).map(path => ({ op: 'delete', path: [entry.key, ...path] })),
    )
  }
  return edits
}

/** The paths of an entry that would hide one of the settings: the same value, replaced rather than appended to. */
function overridesIn(entry: NodeFileEntry, settings: Settings): string[][] {
  return Object.entries(settings).flatMap(([text, value]) => {
    const path = editPath(text)
    if (value === null || path.at(-1)?.endsWith('+') === true) return []
    return treeAt(entry.layer.tree, path) === undefined ? [] : [keysIn(entry.layer.tree, path)]
  })
}

/** A new entry only wins when it is read last: in the last of the files. */
const lastNodesFile = (site: Site): SiteFile | undefined => site.files.files.findLast(file => file.kind === 'nodes')

/** Out of every entry and every cluster that names them. */
export function removeNodes(site: Site, nodes: string): FileEdits {
  const set = knownNodes(site, nodes)
  refuseMade(site, set)
  const edits = new Map<string, YamlEdit[]>()
  const add = (file: string, edit: YamlEdit): void => void edits.set(file, [...(edits.get(file) ?? []), edit])
  for (const file of site.files.files) {
    const taken = new Set(file.entries.map(entry => entry.key))
    for (const entry of file.entries) {
      const rest = entry.names.filter(name => !set.has(name))
      if (rest.length === entry.names.length) continue
      if (rest.length === 0) add(file.path, { op: 'delete', path: [entry.key] })
      else {
        const to = freeKey(rest, taken)
        taken.add(to)
        add(file.path, { op: 'rename', path: [entry.key], to })
      }
    }
    if (file.kind === 'cluster') leaveCluster(site, file, set, add)
  }
  return edits
}

/** Nodes that a switch makes are in no list that they could be taken out of. */
function refuseMade(site: Site, set: NodeSet): void {
  for (const name of set) {
    const made = site.nodes.get(name)?.entries.find(({ layer }) => layer.file === 'site.yaml')
    if (made !== undefined)
      throw new MusterError('EDIT_INVALID', `${name} is a port of a switch: ${made.key} in site.yaml makes it`, {
        hint: `take its port out of ${made.key}.ports`,
      })
  }
}

/** The folded set; where that is the key of another entry, the same set in other words: n1 → n1,n1. */
function freeKey(names: readonly string[], taken: ReadonlySet<string>): string {
  let key = fold(names)
  while (taken.has(key)) key += `,${names[0]}`
  return key
}

function leaveCluster(site: Site, file: SiteFile, set: NodeSet, add: (file: string, edit: YamlEdit) => void): void {
  const text = clusterNodes(file)
  const before = parseNodeSet(text, { groups: site.sets })
  const rest = before.difference(set)
  if (rest.size === before.size) return
  if (rest.size === 0)
    throw new MusterError('EDIT_INVALID', `cluster ${file.name} would have no node left: remove ${file.path} first`)
  if (!/[@*?]/.test(text)) {
    add(file.path, { op: 'set', path: ['nodes'], value: String(rest) })
    return
  }
  // Who is gone is in no group either; only those the text names itself have to be taken out of it.
  const remaining: GroupResolver = {
    all: () => [...site.nodes.keys()].filter(name => !set.has(name)),
    members: group => site.sets.members(group) && [...(site.sets.members(group) ?? [])].filter(name => !set.has(name)),
  }
  const named = parseNodeSet(text, { groups: remaining }).intersection(set)
  if (named.size > 0) add(file.path, { op: 'set', path: ['nodes'], value: `${text}!${named}` })
}

export function addGroup(site: Site, name: string, settings: Settings): FileEdits {
  if (site.groups.has(name)) throw new MusterError('GROUP_EXISTS', `there is a group ${name} already`)
  if (!NAME.test(name)) {
    throw new MusterError('EDIT_INVALID', `${name} is not a name (lower-case letters, digits, - and _)`)
  }
  return new Map([[groupFile(name), settingEdits(settings, [], undefined)]])
}

export function setGroup(site: Site, name: string, settings: Settings): FileEdits {
  const group = knownGroup(site, name)
  return new Map([[group.file.path, settingEdits(settings, [], group.file.tree)]])
}

export function removeGroup(site: Site, name: string): FileEdits {
  const group = knownGroup(site, name)
  const members = NodeSet.of(site.sets.members(name) ?? [])
  if (members.size > 0)
    throw new MusterError(
      'GROUP_IN_USE',
      `${members.size === 1 ? 'node' : 'nodes'} ${members} ${members.size === 1 ? 'is' : 'are'} in group ${name}`,
    )
  return new Map([[group.file.path, null]])
}

export const groupFile = (name: string): string => `groups/${name}.yaml`

function knownGroup(site: Site, name: string): { readonly file: SiteFile } {
  const group = site.groups.get(name)
  if (group === undefined) throw new MusterError('GROUP_UNKNOWN', `there is no group ${name}`)
  return group
}

function knownNodes(site: Site, nodes: string): NodeSet {
  const set = parseNodeSet(nodes, { groups: site.sets })
  const unknown = set.difference(NodeSet.of(site.nodes.keys()))
  if (unknown.size > 0) throw new MusterError('NODE_UNKNOWN', `no such node: ${unknown}`)
  if (set.size === 0) throw new MusterError('NODE_UNKNOWN', `${nodes} names no node`)
  return set
}

function clusterNodes(file: SiteFile): string {
  const value = file.tree?.entries.get('nodes')?.value
  return value?.kind === 'scalar' ? String(value.value) : ''
}

/** Settings of one layer as edits of its file; `tree` is what the layer says now. */
function settingEdits(settings: Settings, prefix: readonly string[], tree: MapTree | undefined): YamlEdit[] {
  return Object.entries(settings).flatMap(([text, value]): YamlEdit[] => {
    const path = editPath(text)
    const { name, appends } = splitKey(path.at(-1) ?? '')
    const plain = [...path.slice(0, -1), name]
    const here = tree === undefined ? undefined : treeAt(tree, plain)
    const keys = here === undefined || tree === undefined ? undefined : keysIn(tree, plain)
    if (value === null) {
      if (keys === undefined)
        throw new MusterError('EDIT_INVALID', `${text} is not set here`, {
          hint: 'see where it comes from with: muster explain NODE',
        })
      return [{ op: 'delete', path: [...prefix, ...keys] }]
    }
    if (appends && keys !== undefined && here?.kind === 'list') {
      return [
        { op: 'set', path: [...prefix, ...keys], value: [...(plainOf(here) as unknown[]), ...(value as unknown[])] },
      ]
    }
    const replaced: YamlEdit[] =
      keys === undefined || keys.at(-1) === path.at(-1) ? [] : [{ op: 'delete', path: [...prefix, ...keys] }]
    return [...replaced, { op: 'set', path: [...prefix, ...path], value }]
  })
}

/** The keys as written on the way to a value: boot.args may stand there as boot, args+. */
function keysIn(tree: MapTree, path: readonly string[]): string[] {
  const keys: string[] = []
  for (const key of path) {
    const parent = treeAt(tree, keys)
    keys.push(parent?.kind === 'map' && !parent.entries.has(key) && parent.entries.has(`${key}+`) ? `${key}+` : key)
  }
  return keys
}

/** The settings of a file on a node: the only keys that may follow a path that itself contains dots. */
const FILE_SETTING = /^(\/.*)\.(source|owner|group|mode)$/

/** 'boot.image' → [boot, image]; 'files./etc/slurm/slurm.conf' → [files, /etc/slurm/slurm.conf] */
export function editPath(text: string): string[] {
  const path = text.startsWith('files./') ? ['files', ...splitTarget(text.slice('files.'.length))] : text.split('.')
  if (path.some(key => key === '' || key === '+'))
    throw new MusterError('EDIT_INVALID', `${JSON.stringify(text)} is not a path such as boot.image`)
  return path
}

function splitTarget(text: string): string[] {
  const match = FILE_SETTING.exec(text)
  return match === null ? [text] : [match[1] ?? '', match[2] ?? '']
}
