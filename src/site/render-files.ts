import { createHash } from 'node:crypto'
import { MusterError } from '../lib/errors.ts'
import { numbersOf, parseNodeSet } from '../lib/nodeset/index.ts'
import {
  type Renderer,
  createRenderer,
  referencedPaths,
  undefinedPath,
  valueIn,
  withoutCovered,
} from '../lib/template.ts'
import type { SiteNode } from './members.ts'
import { type Plain, isMap } from './paths.ts'
import { type Site, nodeNamed } from './site.ts'
import type { SiteSource, SourceFile } from './source.ts'

/** A file of a node, as it is to be on it; or why it cannot be. */
export type NodeFile = {
  readonly path: string
  /** Where it comes from: files/motd.j2. */
  readonly source: string
  readonly owner: string
  readonly group: string
  readonly mode: string
} & (Content | { readonly problem: string })

interface Content {
  readonly content: Buffer
  readonly sha256: string
  /** A secret went into it. */
  readonly isSecret: boolean
}

/** What a secret is where it is written: opened, or something in its place. */
export type OpenSecret = (armored: string) => Promise<string>

/**
 * Renders what nodes get of `files`. A source that ends in .j2 is a template over the values of the node, its facts, the
 * networks and, with nodes('@compute'), all other nodes; anything else is taken as it is. Nodes for which everything that
 * a template refers to is the same share what it gives: of twenty thousand nodes most files are rendered once.
 */
export class FileRenderer {
  readonly #site: Site
  readonly #source: SiteSource
  readonly #openSecret: OpenSecret
  readonly #renderer: Renderer = createRenderer()
  readonly #sources = new Map<string, Source>()
  #files: Promise<readonly SourceFile[]> | undefined
  readonly #secrets = new Map<string, Promise<string>>()
  /** What templates of all nodes see. */
  readonly #common: Plain

  constructor(site: Site, source: SiteSource, openSecret: OpenSecret) {
    this.#site = site
    this.#source = source
    this.#openSecret = openSecret
    this.#common = { networks: Object.fromEntries(site.networks) }
  }

  /** One that cannot be rendered is no reason to do without the others. */
  async render(node: SiteNode): Promise<NodeFile[]> {
    const { value } = this.#site.resolve(node)
    const facts = this.#facts(node, value)
    const files: NodeFile[] = []
    for (const [path, settings] of Object.entries((value['files'] ?? {}) as Record<string, FileSettings>)) {
      const { source, owner = 'root', group = 'root', mode = '0644' } = settings
      const file = { path, source: `files/${source}`, owner, group, mode }
      try {
        const content = this.#contentOf(source, facts)
        files.push({ ...file, ...(content instanceof Promise ? await content : content) })
      } catch (error) {
        if (!(error instanceof MusterError)) throw error
        files.push({ ...file, problem: `files/${source}: ${error.message}` })
      }
    }
    return files
  }

  /** At once, unless something has to be read or opened first. */
  #contentOf(source: string, facts: Plain): Content | Promise<Content> {
    const read = this.#sources.get(source)
    if (read === undefined) return this.#read(source).then(() => this.#contentOf(source, facts))
    if (read.kind === 'verbatim') return read.content
    const given = read.references.map(path => valueIn(facts, path))
    const key = JSON.stringify(given)
    let rendered = read.rendered.get(key)
    if (rendered === undefined) read.rendered.set(key, (rendered = this.#renderOne(read, facts, given)))
    return rendered
  }

  async #read(source: string): Promise<void> {
    this.#files ??= this.#source.files()
    const file = (await this.#files).find(({ path }) => path === `files/${source}`)
    if (file === undefined || file.refused !== undefined)
      throw new MusterError('SITE_INVALID', file?.refused ?? 'is not there')
    const bytes = await this.#source.read(file)
    const text = bytes.toString('utf8')
    this.#sources.set(
      source,
      source.endsWith('.j2')
        ? { kind: 'template', source, text, references: withoutCovered(referencedPaths(text)), rendered: new Map() }
        : { kind: 'verbatim', content: contentOf(bytes, false) },
    )
  }

  #renderOne(template: Template, facts: Plain, given: readonly unknown[]): Content | Promise<Content> {
    if (!given.some(holdsSecret)) return this.#renderWith(template, facts, given, false)
    return Promise.all(given.map(value => this.#open(value))).then(opened =>
      this.#renderWith(template, facts, opened, true),
    )
  }

  #renderWith(
    { source, text, references }: Template,
    facts: Plain,
    given: readonly unknown[],
    isSecret: boolean,
  ): Content {
    const context: Record<string, unknown> = { nodes: (set: unknown) => this.#nodes(String(set), text) }
    for (const [index, path] of references.entries()) if (given[index] !== undefined) put(context, path, given[index])
    try {
      return contentOf(Buffer.from(this.#renderer.renderFile(source, text, context)), isSecret)
    } catch (error) {
      if (!(error instanceof MusterError) || !error.message.endsWith('undefined value')) throw error
      const name = undefinedPath(text, facts)?.join('.')
      if (name === undefined) throw error
      throw new MusterError('TEMPLATE_INVALID', error.message.replace(/undefined value$/, `there is no ${name}`))
    }
  }

  async #open(value: unknown): Promise<unknown> {
    if (Array.isArray(value)) return Promise.all(value.map(item => this.#open(item)))
    if (!isMap(value)) return value
    const { $secret: armored } = value
    if (typeof armored === 'string') return this.#opened(armored)
    const entries = Object.entries(value).map(async ([key, item]) => [key, await this.#open(item)])
    return Object.fromEntries(await Promise.all(entries))
  }

  #opened(armored: string): Promise<string> {
    let opening = this.#secrets.get(armored)
    if (opening === undefined) this.#secrets.set(armored, (opening = this.#openSecret(armored)))
    return opening
  }

  #facts({ name, cluster, groups }: SiteNode, value: Plain): Plain {
    const numbers = numbersOf(name)
    const facts = { name, cluster, groups, site: this.#site.name, numbers, index: numbers.at(-1) }
    return { ...value, ...facts, ...this.#common }
  }

  /**
   * All nodes of a set with those of their values that the template names: it gets them all copied, and of thousands of
   * nodes that takes time. Of secrets there are none: they are for the node itself.
   */
  #nodes(set: string, template: string): readonly Plain[] {
    const words = new Set(template.match(/\w+/g))
    return [...parseNodeSet(set, { groups: this.#site.sets })].map(name => {
      const { value } = this.#site.resolve(nodeNamed(this.#site, name))
      const named = Object.entries(value).filter(([key]) => words.has(key))
      return { ...withoutSecrets(Object.fromEntries(named)), name, index: numbersOf(name).at(-1) }
    })
  }
}

interface FileSettings {
  readonly source: string
  readonly owner?: string
  readonly group?: string
  readonly mode?: string
}

type Source = { readonly kind: 'verbatim'; readonly content: Content } | Template
interface Template {
  readonly kind: 'template'
  readonly source: string
  readonly text: string
  readonly references: readonly (readonly string[])[]
  /** By everything it refers to. */
  readonly rendered: Map<string, Content | Promise<Content>>
}

const contentOf = (content: Buffer, isSecret: boolean): Content => ({
  content,
  sha256: createHash('sha256').update(content).digest('hex'),
  isSecret,
})

function holdsSecret(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsSecret)
  return isMap(value) && ('$secret' in value || Object.values(value).some(holdsSecret))
}

function withoutSecrets(value: Plain): Plain {
  const kept = Object.entries(value).filter(([, item]) => !(isMap(item) && '$secret' in item))
  return Object.fromEntries(kept.map(([key, item]) => [key, isMap(item) ? withoutSecrets(item) : item]))
}

/** At ['vars', 'rack'] of a context that may have other values below vars. */
function put(context: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = context
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(at, key)) define(at, key, {})
    at = at[key] as Record<string, unknown>
  }
  define(at, path.at(-1) ?? '', value)
}

/** `__proto__` is a key like any other. */
const define = (map: object, key: string, value: unknown): void =>
  void Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
