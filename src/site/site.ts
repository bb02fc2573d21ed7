import type { z } from 'zod'
import { type GroupResolver, type NodeSet, numbersOf } from '../lib/nodeset/index.ts'
import { MusterError } from '../lib/errors.ts'
import { didYouMean } from '../lib/suggest.ts'
import { type Renderer, createRenderer } from '../lib/template.ts'
import { type FilePlan, FilePlans } from './file-plan.ts'
import { type SiteFile, type SiteFiles, readSiteFiles } from './files.ts'
import { type Branch, LayerMerger } from './layers.ts'
import { type SiteGroup, type SiteNode, groupResolver, readClusters, readGroups, readNodes } from './members.ts'
import type { Plain } from './paths.ts'
import type { Problem } from './problems.ts'
import { Resolver } from './resolve.ts'
import { Channel, Network, Provision, Trust } from './schema.ts'
import { type SwitchNodes, switchNodes } from './switch-nodes.ts'
import { Switch } from './switches.ts'
import type { SiteSource } from './source.ts'
import { plainOf, treeAt } from './validate.ts'
import { NAME } from './values.ts'

/** A site: who its nodes are, and on demand what each of them gets. */
export interface Site {
  readonly name: string
  readonly files: SiteFiles
  readonly networks: ReadonlyMap<string, Network>
  readonly switches: ReadonlyMap<string, Switch>
  readonly provision: Provision
  readonly trust: Trust
  readonly channels: ReadonlyMap<string, Channel>
  /** The image of `defaults`, unless it is a template. */
  readonly defaultImage: string | undefined
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
  /** What is to be where on the node, before any of it is rendered. */
  filesOf(node: SiteNode): FilePlan
  /** The tools that remember earlier work, for the next version of this site. */
  readonly memory: SiteMemory
}

/** What a node is to get: the value stored as desired state. */
export interface ResolvedNode {
  readonly value: Plain
  /** The same without the content of files: what templates see of it. The very same for as long as it does not change. */
  readonly own: Plain
  readonly problems: readonly Problem[]
}

interface SiteMemory {
  readonly merger: LayerMerger
  readonly resolver: Resolver
  readonly resolved: WeakMap<Branch, Map<string, Remembered>>
  readonly renderer: Renderer
  readonly files: FilePlans
  /** Layers that are the same keep what was made of them. */
  readonly switchNodes: WeakMap<SiteFile, SwitchNodes>
}

interface Remembered {
  /** What else went into the values, besides the layers. */
  readonly key: string
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
  const renderer = known?.renderer ?? createRenderer()
  const memory = known ?? {
    renderer,
    merger: new LayerMerger(),
    resolver: new Resolver(renderer),
    resolved: new WeakMap(),
    files: new FilePlans(),
    switchNodes: new WeakMap(),
  }
  const switches = readMap(main, 'switches', Switch)
  const made = main && (memory.switchNodes.get(main) ?? switchNodes(main, switches, memory.renderer))
  if (main !== undefined && made !== undefined) memory.switchNodes.set(main, made)
  problems.push(...(made?.problems ?? []))
  const nodes = readNodes(files, groups, name, problems, made?.entries)
  const clusters = readClusters(files, nodes, groups, problems)
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
  const resolve = (node: SiteNode): ResolvedNode => resolveNode(memory, files, name, node, layersOf(node))
  return {
    name,
    files,
    groups,
    clusters,
    nodes,
    problems,
    memory,
    layersOf,
    networks: readMap(main, 'networks', Network),
    switches,
    provision: readPart(main, 'provision', Provision),
    trust: readPart(main, 'trust', Trust),
    channels: readMap(main, 'channels', Channel),
    defaultImage: defaultImageOf(main),
    recipients: readRecipients(main),
    sets: groupResolver(nodes, groups, clusters),
    resolve,
    filesOf: node => memory.files.planOf(resolve(node).value['files'] as Plain | undefined, files.blobs),
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
  if (known?.key === key) {
    const resolved = withContent(memory, known.node, blobs)
    if (resolved !== known.node) byNode.set(node.name, { key, node: resolved })
    return resolved
  }
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
  const own = { cluster, groups, ...value }
  const resolved = withContent(memory, { value: own, own, problems }, blobs)
  byNode.set(name, { key, node: resolved })
  return resolved
}

/** A change of the content of a file is a change of the node. */
function withContent({ files }: SiteMemory, node: ResolvedNode, blobs: SiteFiles['blobs']): ResolvedNode {
  const raw = node.own['files'] as Plain | undefined
  if (raw === undefined) return node
  const wanted = files.withBlobs(raw, blobs)
  return node.value['files'] === wanted ? node : { ...node, value: { ...node.own, files: wanted } }
}

export function nodeNamed(site: Site, name: string): SiteNode {
  const node = site.nodes.get(name)
  if (node === undefined)
    throw new MusterError('NODE_UNKNOWN', `no node is named ${name}${didYouMean(name, site.nodes.keys())}`)
  return node
}

function readMap<Value>(main: SiteFile | undefined, key: string, schema: z.ZodType<Value>): Map<string, Value> {
  const tree = main?.tree?.entries.get(key)?.value
  if (tree?.kind !== 'map') return new Map()
  return new Map(
    [...tree.entries].flatMap(([name, entry]) => {
      const value = schema.safeParse(plainOf(entry.value))
      return value.success ? [[name, value.data] as const] : []
    }),
  )
}

/** What is said wrongly counts as not said: it is reported with its line, and nothing of it is applied. */
function readPart<Part>(main: SiteFile | undefined, key: string, schema: z.ZodType<Part>): Part {
  const tree = main?.tree?.entries.get(key)?.value
  const part = schema.safeParse(tree === undefined ? {} : plainOf(tree))
  return part.success ? part.data : schema.parse({})
}

function defaultImageOf(main: SiteFile | undefined): string | undefined {
  const tree = treeAt(main?.tree, ['defaults', 'boot', 'image'])
  const image = tree?.kind === 'scalar' && typeof tree.value === 'string' ? tree.value.split('@')[0] : undefined
  return image !== undefined && NAME.test(image) ? image : undefined
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
