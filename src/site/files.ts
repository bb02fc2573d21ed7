import { parseNodeSet } from '../lib/nodeset/index.ts'
import { MusterError, messageOf } from '../lib/errors.ts'
import { readFast } from '../lib/yaml/fast.ts'
import type { MapTree, Place, Tree } from '../lib/yaml/tree.ts'
import type { Layer } from './layers.ts'
import type { Problem } from './problems.ts'
import { type FileKind, fileSchemas } from './schema.ts'
import { NAME } from './values.ts'
import { MAX_FILE_BYTES, MAX_YAML_BYTES, type SiteSource, type SourceFile, blobId } from './source.ts'
import { validateTree } from './validate.ts'

/** One YAML file of a site, read. Kept from one version of the site to the next while its content is the same. */
export interface SiteFile {
  readonly path: string
  readonly kind: FileKind
  /** Name of the group or cluster: the file's name. */
  readonly name: string
  readonly blob: string
  readonly tree: MapTree | undefined
  /** The layers it is: a group or a cluster one, site.yaml its domain and its defaults; a file of nodes has one per entry. */
  readonly layers: readonly Layer[]
  readonly entries: readonly NodeFileEntry[]
  /** It cannot be read at all: text, encoding, YAML. */
  readonly problems: readonly Problem[]
  /** It reads, but does not say what it should; worked out when asked for. */
  validate(): readonly Problem[]
}

export interface NodeFileEntry extends Place {
  /** As written: n[001-128]. */
  readonly key: string
  readonly names: readonly string[]
  readonly layer: Layer
  readonly groups: GroupList | undefined
}

/** What a `groups:` or `groups+:` says, and where. */
export interface GroupList extends Place {
  readonly appends: boolean
  readonly names: readonly (Place & { readonly name: string })[]
}

export interface SiteFiles {
  readonly files: readonly SiteFile[]
  /** Paths below files/ → identity of their content. */
  readonly blobs: ReadonlyMap<string, string>
  /** Images that have a recipe. */
  readonly images: ReadonlySet<string>
  readonly problems: readonly Problem[]
}

export async function readSiteFiles(source: SiteSource, previous?: SiteFiles): Promise<SiteFiles> {
  const known = new Map(previous?.files.map(file => [file.path, file]))
  const listed = await source.files()
  const problems: Problem[] = listed.flatMap(refusal)
  const readable = listed.filter(file => refusal(file).length === 0)

  const files = (await Promise.all(readable.map(file => readSiteFile(source, file, known.get(file.path))))).filter(
    file => file !== undefined,
  )
  const carried = readable.filter(file => file.path.startsWith('files/'))
  const blobs = new Map(
    await Promise.all(carried.map(async file => [file.path.slice('files/'.length), await source.blob(file)] as const)),
  )
  const sameBlobs =
    previous !== undefined &&
    previous.blobs.size === blobs.size &&
    [...blobs].every(([path, blob]) => previous.blobs.get(path) === blob)
  const images = new Set(readable.flatMap(file => /^images\/([^/]+)\/image\.yaml$/.exec(file.path)?.[1] ?? []))
  return {
    files,
    blobs: sameBlobs ? previous.blobs : blobs,
    images,
    problems: [...problems, ...files.flatMap(file => file.problems)],
  }
}

interface Role {
  readonly kind: FileKind
  readonly name: string
}

/** groups/gpu.yaml → the group gpu; undefined for what is no YAML of ours. */
export function roleOf(path: string): Role | undefined {
  if (path === 'site.yaml') return { kind: 'site', name: 'site' }
  if (path === 'nodes.yaml' || /^nodes\/[^/]+\.yaml$/.test(path)) return { kind: 'nodes', name: path }
  const [, image] = /^images\/([^/]+)\/image\.yaml$/.exec(path) ?? []
  if (image !== undefined) return { kind: 'image', name: image }
  const [, module] = /^modules\/([^/]+)\/module\.yaml$/.exec(path) ?? []
  if (module !== undefined) return { kind: 'module', name: module }
  const [, folder, name = ''] = /^(groups|clusters)\/([^/]+)\.yaml$/.exec(path) ?? []
  if (folder === 'groups') return { kind: 'group', name }
  if (folder === 'clusters') return { kind: 'cluster', name }
  return undefined
}

function refusal(file: SourceFile): Problem[] {
  const at = { file: file.path, line: 1, column: 1 }
  const role = roleOf(file.path)
  if (file.refused !== undefined) return [{ ...at, message: file.refused }]
  const limit = role === undefined ? MAX_FILE_BYTES : MAX_YAML_BYTES
  if (file.size > limit)
    return [{ ...at, message: `is too large: ${mebibytes(file.size)} MiB, at most ${mebibytes(limit)}` }]
  if (role !== undefined && role.kind !== 'site' && role.kind !== 'nodes' && !NAME.test(role.name)) {
    return [{ ...at, message: `is not a name for a ${role.kind} (lower-case letters, digits, - and _)` }]
  }
  const [folder = '', ...below] = file.path.split('/')
  if (/^(site|nodes)\.yml$|^(groups|clusters|nodes)\/.*\.yml$/.test(file.path))
    return [{ ...at, message: 'is not read: its name must end in .yaml' }]
  if (SETTINGS.has(folder) && below.length > 1 && file.path.endsWith('.yaml'))
    return [{ ...at, message: `is not read: it must stand in ${folder}/ itself` }]
  return []
}

const SETTINGS = new Set(['groups', 'clusters', 'nodes'])

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20)

async function readSiteFile(
  source: SiteSource,
  file: SourceFile,
  known: SiteFile | undefined,
): Promise<SiteFile | undefined> {
  const role = roleOf(file.path)
  if (role === undefined) return undefined
  if (known !== undefined && known.blob === file.blob) return known
  const content = await source.read(file)
  const blob = file.blob ?? blobId(content)
  return known !== undefined && known.blob === blob ? known : parseSiteFile(file.path, role, blob, content)
}

async function parseSiteFile(path: string, role: Role, blob: string, content: Buffer): Promise<SiteFile> {
  const fail = (problem: Omit<Problem, 'file'>): SiteFile =>
    siteFile(path, role, blob, undefined, [], [{ file: path, ...problem }])
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    return fail({ line: 1, column: 1, message: 'is not text (not UTF-8)' })
  }
  const nul = text.indexOf('\0')
  if (nul >= 0) {
    const before = text.slice(0, nul).split('\n')
    return fail({
      line: before.length,
      column: (before.at(-1)?.length ?? 0) + 1,
      message: 'is not text (it holds a NUL byte)',
    })
  }
  // The thorough reader is only loaded when it is needed: commands start without it.
  const { tree, problems } = readFast(text) ?? (await import('../lib/yaml/full.ts')).readFull(text)
  if (problems.length > 0)
    return siteFile(
      path,
      role,
      blob,
      undefined,
      [],
      problems.map(problem => ({ file: path, ...problem })),
    )
  if (tree !== undefined && tree.kind !== 'map' && !(tree.kind === 'scalar' && tree.value === null)) {
    return fail({ line: tree.line, column: tree.column, message: 'must be a map of keys and values' })
  }
  const map = tree?.kind === 'map' ? tree : undefined
  const { entries, problems: bad } = role.kind === 'nodes' ? nodeEntries(path, map) : { entries: [], problems: [] }
  return siteFile(path, role, blob, map, entries, bad)
}

function siteFile(
  path: string,
  { kind, name }: Role,
  blob: string,
  tree: MapTree | undefined,
  entries: readonly NodeFileEntry[],
  problems: readonly Problem[],
): SiteFile {
  let validated: readonly Problem[] | undefined
  return {
    path,
    kind,
    name,
    blob,
    tree,
    entries,
    problems,
    layers: tree === undefined ? [] : layersOf(path, kind, name, tree),
    validate: () =>
      (validated ??=
        // A recipe is checked once its templates are rendered: render-recipe.ts.
        kind === 'image' || (tree === undefined && problems.length > 0)
          ? []
          : validateTree(path, tree ?? EMPTY_MAP, fileSchemas[kind])),
  }
}

const EMPTY_MAP: MapTree = { kind: 'map', entries: new Map(), line: 1, column: 1 }

function layersOf(file: string, kind: FileKind, name: string, tree: MapTree): Layer[] {
  if (kind === 'nodes' || kind === 'image' || kind === 'module') return []
  if (kind !== 'site') return [{ name: `${kind} ${name}`, file, tree }]
  const domain = tree.entries.get('domain')
  const defaults = tree.entries.get('defaults')?.value
  return [
    ...(domain === undefined
      ? []
      : [{ name: 'site', file, tree: { ...tree, entries: new Map([['domain', domain]]) } }]),
    ...(defaults?.kind === 'map' ? [{ name: 'defaults', file, tree: defaults }] : []),
  ]
}

function namesIn(key: string): string[] {
  const names = [...parseNodeSet(key)]
  if (names.length === 0) throw new MusterError('NODESET_INVALID', `${JSON.stringify(key)} names no node`)
  return names
}

export function groupList(tree: MapTree | undefined): GroupList | undefined {
  const replaced = tree?.entries.get('groups')
  const entry = replaced ?? tree?.entries.get('groups+')
  if (entry?.value.kind !== 'list') return undefined
  const names = entry.value.items.flatMap(item =>
    item.kind === 'scalar' ? [{ name: String(item.value), line: item.line, column: item.column }] : [],
  )
  return { line: entry.line, column: entry.column, appends: replaced === undefined, names }
}

/** Sites may list tens of thousands of nodes one by one: those need no parsing. */
const PLAIN_NAME = /^[a-z][a-z0-9]{0,14}$/

function nodeEntries(file: string, tree: MapTree | undefined): { entries: NodeFileEntry[]; problems: Problem[] } {
  const entries: NodeFileEntry[] = []
  const problems: Problem[] = []
  for (const [key, { value, line, column }] of tree?.entries ?? []) {
    try {
      const body: Tree = value.kind === 'map' ? value : { kind: 'map', entries: new Map(), line, column }
      entries.push({
        line,
        column,
        key,
        names: PLAIN_NAME.test(key) ? [key] : namesIn(key),
        layer: { name: `node ${key}`, file, tree: body },
        groups: groupList(body),
      })
    } catch (error) {
      problems.push({ file, line, column, message: messageOf(error) })
    }
  }
  return { entries, problems }
}
