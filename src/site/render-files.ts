import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { MusterError } from '../lib/errors.ts'
import { numbersOf, parseNodeSet } from '../lib/nodeset/index.ts'
import { sshHostKey } from '../lib/ssh-host-key.ts'
import {
  type Renderer,
  createRenderer,
  referencedPaths,
  undefinedPath,
  valueIn,
  withoutCovered,
} from '../lib/template.ts'
import type { SiteNode } from './members.ts'
import type { PlannedContent, PlannedFile } from './file-plan.ts'
import { type Plain, hideSecrets, isMap } from './paths.ts'
import { mainAddresses } from './main-address.ts'
import { readyTemplate } from './ready-files.ts'
import { type Site, nodeNamed } from './site.ts'
import type { SiteSource, SourceFile } from './source.ts'

/** A file of a node, as it is to be on it; or why it cannot be. */
export type NodeFile =
  | RenderedFile
  | Exclude<PlannedFile, PlannedContent>
  | { readonly kind: 'problem'; readonly path: string; readonly problem: string }
type RenderedFile = PlannedContent & Rendered
export type Rendered = Content | Failed
interface Failed {
  readonly problem: string
}

export interface Content {
  readonly content: Buffer
  readonly sha256: string
  /** A secret went into it. */
  readonly isSecret: boolean
}

/** What a secret is where it is written: opened, or something in its place. */
export type OpenSecret = (armored: string) => Promise<string>

/** What outlives a version of the site: templates that were compiled, secrets that were opened. */
export interface RenderMemory {
  readonly renderer: Renderer
  readonly secrets: Map<string, Promise<string>>
}

export const renderMemory = (): RenderMemory => ({ renderer: createRenderer(), secrets: new Map() })

/**
 * Renders what nodes get of `files`. A source that ends in .j2 is a template over the values of the node, its facts, the
 * networks and, with nodes('@compute'), all other nodes; anything else is taken as it is. Nodes for which everything that
 * a template refers to is the same share what it gives: of twenty thousand nodes most files are rendered once.
 */
export class FileRenderer {
  readonly #site: Site
  readonly #source: SiteSource
  readonly #openSecret: OpenSecret
  readonly #memory: RenderMemory
  readonly #sources = new Map<string, Source>()
  #files: Promise<ReadonlyMap<string, SourceFile>> | undefined
  /** What templates of all nodes see. */
  readonly #common: Plain
  readonly #addressOf: (own: Plain) => string | undefined

  constructor(site: Site, source: SiteSource, openSecret: OpenSecret, memory = renderMemory()) {
    this.#site = site
    this.#source = source
    this.#openSecret = openSecret
    this.#memory = memory
    this.#common = commonOf(site)
    this.#addressOf = mainAddresses(site)
  }

  /** One that cannot be rendered is no reason to do without the others. */
  async render(node: SiteNode): Promise<NodeFile[]> {
    const { entries, problems } = this.#site.filesOf(node)
    const facts = this.factsOf(node)
    const files: NodeFile[] = []
    for (const { path, message } of problems) files.push({ kind: 'problem', path: path[0], problem: message })
    for (const entry of entries)
      files.push(entry.kind === 'file' ? { ...entry, ...(await this.renderOne(entry, facts)) } : entry)
    return files
  }

  /** At once, unless something has to be read or opened first. */
  renderOne(entry: PlannedContent, facts: Plain): Rendered | Promise<Rendered> {
    const failed = (error: unknown): Failed => {
      if (!(error instanceof MusterError)) throw error
      return { problem: `${entry.source}: ${error.message}` }
    }
    try {
      const content = this.#contentOf(entry, facts)
      return content instanceof Promise ? content.catch(failed) : content
    } catch (error) {
      return failed(error)
    }
  }

  /** Of a template that was rendered: the words with which it may name values of other nodes, if it looks at any. */
  peerWords({ source }: PlannedContent): ReadonlySet<string> | undefined {
    const read = this.#sources.get(source)
    if (read?.kind !== 'template' || !read.references.some(([name]) => name === 'nodes')) return undefined
    return (read.words ??= wordsOf(read.text))
  }

  /** What templates of a node see: everything but which files it gets, which is none of their business. */
  factsOf(node: SiteNode): Plain {
    const { name, cluster, groups } = node
    const numbers = numbersOf(name)
    const { files: _, ...own } = this.#site.resolve(node).own
    const address = this.#addressOf(own)
    const facts = { name, cluster, groups, site: this.#site.name, numbers, index: numbers.at(-1), address }
    return { ...own, ...facts, ...this.#common }
  }

  /** At once, unless something has to be read or opened first. */
  #contentOf(entry: PlannedContent, facts: Plain): Content | Promise<Content> {
    const read = this.#sources.get(entry.source)
    if (read === undefined) return this.#read(entry).then(() => this.#contentOf(entry, facts))
    if (read.kind === 'verbatim') return read.content
    const seen = entry.interface === undefined ? facts : { ...facts, interface: entry.interface }
    const given = read.references.map(path => valueIn(seen, path))
    const key = JSON.stringify(given)
    let rendered = read.rendered.get(key)
    if (rendered === undefined) read.rendered.set(key, (rendered = this.#renderTemplate(read, seen, given)))
    return rendered
  }

  async #read({ source, blob, ready }: PlannedContent): Promise<void> {
    if (ready !== undefined) {
      this.#sources.set(source, templateOf(source, await readFile(readyTemplate(ready), 'utf8')))
      return
    }
    this.#files ??= this.#source.files().then(files => new Map(files.map(file => [file.path, file])))
    const file = (await this.#files).get(source)
    if (file === undefined || file.refused !== undefined)
      throw new MusterError('SITE_INVALID', file?.refused ?? 'is not there')
    const bytes = await this.#source.read(file)
    const text = bytes.toString('utf8')
    this.#sources.set(
      source,
      source.endsWith('.j2')
        ? templateOf(`${source} ${blob}`, text)
        : { kind: 'verbatim', content: contentOf(bytes, false) },
    )
  }

  #renderTemplate(template: Template, facts: Plain, given: readonly unknown[]): Content | Promise<Content> {
    if (!given.some(holdsSecret)) return this.#renderWith(template, facts, given, false)
    return this.#renderSecrets(template, facts, given)
  }

  /** What goes wrong is told without the secrets: it is rendered once more without them, to see what that says. */
  async #renderSecrets(template: Template, facts: Plain, given: readonly unknown[]): Promise<Content> {
    const opened = await Promise.all(given.map(value => this.#open(value)))
    try {
      return this.#renderWith(template, facts, opened, true)
    } catch (error) {
      if (!(error instanceof MusterError)) throw error
      this.#renderWith(template, facts, given.map(hideSecrets), true)
      throw new MusterError('TEMPLATE_INVALID', 'cannot be rendered with the secrets that are in it')
    }
  }

  #renderWith(template: Template, facts: Plain, given: readonly unknown[], isSecret: boolean): Content {
    const { id, text, references } = template
    const functions = {
      nodes: (set: unknown) => this.#nodes(String(set), (template.words ??= wordsOf(text))),
      ssh_host_key: (secret: unknown, host: unknown) => sshHostKey(String(secret), String(host)).private,
      ssh_host_public_key: (secret: unknown, host: unknown) => sshHostKey(String(secret), String(host)).public,
    }
    const context: Record<string, unknown> = { ...functions }
    for (const [index, path] of references.entries()) put(context, path, given[index])
    try {
      return contentOf(Buffer.from(this.#memory.renderer.renderFile(id, text, context)), isSecret)
    } catch (error) {
      if (!(error instanceof MusterError) || !error.message.endsWith('undefined value')) throw error
      const name = undefinedPath(text, { ...facts, ...functions })?.join('.')
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
    const { secrets } = this.#memory
    let opening = secrets.get(armored)
    if (opening === undefined) {
      secrets.set(armored, (opening = this.#openSecret(armored)))
      // It may be that the key is there the next time.
      opening.catch(() => secrets.delete(armored))
    }
    return opening
  }

  /**
   * All nodes of a set with those of their values that the template names: it gets them all copied, and of thousands of
   * nodes that takes time. Of secrets there are none: they are for the node itself.
   */
  #nodes(set: string, words: ReadonlySet<string>): readonly Plain[] {
    return [...parseNodeSet(set, { groups: this.#site.sets })].map(name => {
      const { own } = this.#site.resolve(nodeNamed(this.#site, name))
      const named = Object.entries(own).filter(([key]) => words.has(key))
      const address = words.has('address') ? this.#addressOf(own) : undefined
      return {
        ...withoutSecrets(Object.fromEntries(named)),
        name,
        index: numbersOf(name).at(-1),
        ...(address !== undefined && { address }),
      }
    })
  }
}

type Source = { readonly kind: 'verbatim'; readonly content: Content } | Template
interface Template {
  readonly kind: 'template'
  /** Another for another content. */
  readonly id: string
  readonly text: string
  words?: ReadonlySet<string>
  readonly references: readonly (readonly string[])[]
  /** By everything it refers to. */
  readonly rendered: Map<string, Content | Promise<Content>>
}

/** What templates of all nodes see. */
export const commonOf = ({ networks, provision: { servers = [], dns } }: Site): Plain => ({
  networks: Object.fromEntries(networks),
  provision: { servers, dns },
})

const templateOf = (id: string, text: string): Template => ({
  kind: 'template',
  id,
  text,
  references: withoutCovered(referencedPaths(text)),
  rendered: new Map(),
})

/** Whoever names the address of a node depends on its interfaces. */
const wordsOf = (template: string): ReadonlySet<string> =>
  new Set([...(template.match(/\w+/g) ?? []), ...(/\baddress\b/.test(template) ? ['interfaces'] : [])])

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

/**
 * At ['vars', 'rack'] of a context that may have other values below vars. Of what there is not, there is all that leads to it:
 * so that a template may ask whether vars.rack is defined.
 */
function put(context: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = context
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(at, key)) define(at, key, {})
    at = at[key] as Record<string, unknown>
  }
  if (value !== undefined) define(at, path.at(-1) ?? '', value)
}

/** `__proto__` is a key like any other. */
const define = (map: object, key: string, value: unknown): void =>
  void Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
