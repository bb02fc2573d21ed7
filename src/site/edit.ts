import { MusterError } from '../lib/errors.ts'
import { NodeSet, fold, parseNodeSet } from '../lib/nodeset/index.ts'
import type { YamlEdit } from '../lib/yaml/edit.ts'
import type { NodeFileEntry, SiteFile } from './files.ts'
import type { Site } from './site.ts'

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
  const existing = set.intersection(NodeSet.of(site.nodes.keys()))
  if (existing.size > 0)
    throw new MusterError('NODE_EXISTS', `${existing} ${existing.size === 1 ? 'exists' : 'exist'} already`)
  const file = options.file ?? site.files.files.findLast(candidate => candidate.kind === 'nodes')?.path ?? 'nodes.yaml'
  const edits: YamlEdit[] = Object.entries(settings).map(([path, value]) => ({
    op: 'set',
    path: [String(set), ...editPath(path)],
    value,
  }))
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

/** Goes into the entry for exactly these nodes, or into a new one behind the others, which therefore wins. */
export function setNodes(site: Site, nodes: string, settings: Settings): FileEdits {
  const set = knownNodes(site, nodes)
  const all = site.files.files.flatMap(file => file.entries.map(entry => ({ file, entry })))
  const exact = all.findLast(({ entry }) => entry.names.length === set.size && entry.names.every(name => set.has(name)))
  const last = all.findLast(({ entry }) => entry.names.some(name => set.has(name)))
  const file = exact?.file ?? lastNodesFile(site, last?.file)
  const key = exact?.entry.key ?? String(set)
  return new Map([[file.path, settingEdits(settings, [key], exact?.entry.layer.tree)]])
}

/** A new entry only wins when it is read last: in the last of the files. */
function lastNodesFile(site: Site, fallback: SiteFile | undefined): SiteFile {
  const file = site.files.files.findLast(candidate => candidate.kind === 'nodes') ?? fallback
  if (file === undefined) throw new MusterError('NODE_UNKNOWN', 'the site has no nodes yet')
  return file
}

/** Out of every entry and every cluster that names them. */
export function removeNodes(site: Site, nodes: string): FileEdits {
  const set = knownNodes(site, nodes)
  const edits = new Map<string, YamlEdit[]>()
  const add = (file: string, edit: YamlEdit): void => void edits.set(file, [...(edits.get(file) ?? []), edit])
  for (const file of site.files.files) {
    for (const entry of file.entries) {
      const rest = entry.names.filter(name => !set.has(name))
      if (rest.length === entry.names.length) continue
      if (rest.length === 0) add(file.path, { op: 'delete', path: [entry.key] })
      else add(file.path, { op: 'rename', path: [entry.key], to: fold(rest) })
    }
    if (file.kind === 'cluster') leaveCluster(site, file, set, add)
  }
  return edits
}

function leaveCluster(site: Site, file: SiteFile, set: NodeSet, add: (file: string, edit: YamlEdit) => void): void {
  const text = clusterNodes(file)
  if (/[@*?]/.test(text)) return
  const before = parseNodeSet(text, { groups: site.sets })
  const rest = before.difference(set)
  if (rest.size === before.size) return
  if (rest.size === 0)
    throw new MusterError('EDIT_INVALID', `cluster ${file.name} would have no node left: remove ${file.path} first`)
  add(file.path, { op: 'set', path: ['nodes'], value: String(rest) })
}

export function addGroup(site: Site, name: string, settings: Settings): FileEdits {
  if (site.groups.has(name)) throw new MusterError('GROUP_EXISTS', `there is a group ${name} already`)
  if (!/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/.test(name)) {
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

function settingEdits(
  settings: Settings,
  prefix: readonly string[],
  tree: NodeFileEntry['layer']['tree'] | undefined,
): YamlEdit[] {
  return Object.entries(settings).map(([text, value]) => {
    const path = editPath(text)
    if (value !== null) return { op: 'set', path: [...prefix, ...path], value }
    const [head = ''] = path
    if (tree?.entries.has(head) !== true)
      throw new MusterError('EDIT_INVALID', `${text} is not set here`, {
        hint: 'see where it comes from with: muster explain NODE',
      })
    return { op: 'delete', path: [...prefix, ...path] }
  })
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
