import type { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { didYouMean } from '../lib/suggest.ts'
import { type Renderer, isTemplate, referencedPaths, undefinedPath, valueIn, withoutCovered } from '../lib/template.ts'
import { type Branch, type Leaf, type Origin, type Value, valueAt } from './layers.ts'
import { type Plain, isMap } from './paths.ts'
import type { Problem } from './problems.ts'
import { leafSchema } from './schema.ts'
import { plainOf, validateValue } from './validate.ts'

/** What a template of a node may use besides the node's own values. */
export interface NodeFacts {
  readonly name: string
  /** The last number of the name, and all of them: r2n07 → 7 and [2, 7]. */
  readonly index: number | undefined
  readonly numbers: readonly number[]
  readonly cluster: string
  readonly groups: readonly string[]
  readonly site: string
}

export interface Resolved {
  readonly value: Plain
  readonly problems: readonly Problem[]
}

/**
 * Turns the merged layers of a node into its values: templates rendered, values checked and brought into their one form.
 * What needs no template is worked out once and shared by all nodes with the same layers.
 */
export class Resolver {
  readonly #renderer: Renderer
  readonly #compiled = new WeakMap<Value, Compiled>()

  constructor(renderer: Renderer) {
    this.#renderer = renderer
  }

  resolve(root: Branch, facts: NodeFacts): Resolved {
    const compiled = this.#compile(root, [])
    const work = new NodeWork(this.#renderer, value => this.#compiled.get(value), root, facts)
    return { value: work.build(compiled) as Plain, problems: work.problems }
  }

  #compile(value: Value, path: readonly string[]): Compiled {
    let compiled = this.#compiled.get(value)
    if (compiled === undefined) {
      compiled = value.kind === 'leaf' ? compileLeaf(value, path) : this.#compileBranch(value, path)
      this.#compiled.set(value, compiled)
    }
    return compiled
  }

  #compileBranch(branch: Branch, path: readonly string[]): Compiled {
    const children: (readonly [string, Compiled])[] = []
    for (const [key, child] of branch.entries) children.push([key, this.#compile(child, [...path, key])])
    if (children.some(([, child]) => child.kind !== 'fixed')) return { kind: 'branch', children }
    return { kind: 'fixed', value: Object.freeze(gather(children, child => (child as Fixed).value)) }
  }
}

/** A value that is the same for every node, or one that has to be worked out for each. */
type Compiled = Fixed | FreshLeaf | FreshBranch
interface Fixed {
  readonly kind: 'fixed'
  readonly value: unknown
}
interface FreshLeaf {
  readonly kind: 'leaf'
  readonly raw: unknown
  readonly references: readonly (readonly string[])[]
  readonly schema: z.ZodType | undefined
  readonly path: readonly string[]
  readonly origin: Origin
}
interface FreshBranch {
  readonly kind: 'branch'
  readonly children: readonly (readonly [key: string, child: Compiled])[]
}

function compileLeaf(leaf: Leaf, path: readonly string[]): Compiled {
  const raw = rawOf(leaf)
  const schema = leafSchema(path)
  const templates = [...templatesIn(raw)]
  if (templates.length > 0) {
    return {
      kind: 'leaf',
      raw,
      references: withoutCovered(templates.flatMap(referencedPaths)),
      schema,
      path,
      origin: leaf.origin,
    }
  }
  if (schema === undefined || raw === null) return { kind: 'fixed', value: raw }
  // What does not fit its schema has been reported where the file was checked.
  const checked = validateValue(schema, raw)
  return { kind: 'fixed', value: 'value' in checked ? checked.value : undefined }
}

function rawOf(leaf: Leaf): unknown {
  const own = plainOf(leaf.tree)
  return leaf.appendsTo === undefined ? own : [...(rawOf(leaf.appendsTo) as unknown[]), ...(own as unknown[])]
}

function* templatesIn(raw: unknown): Generator<string> {
  if (typeof raw === 'string' && isTemplate(raw)) yield raw
  else if (Array.isArray(raw)) for (const item of raw) yield* templatesIn(item)
  else if (isMap(raw) && !('$secret' in raw)) for (const item of Object.values(raw)) yield* templatesIn(item)
}

/** An object of those entries that have a value: null and undefined mean there is none. */
function gather<Item>(entries: Iterable<readonly [string, Item]>, valueOf: (item: Item) => unknown): Plain {
  const result: Record<string, unknown> = {}
  for (const [key, item] of entries) {
    const value = valueOf(item)
    if (value === undefined || value === null) continue
    // `__proto__` is a key like any other.
    if (key === '__proto__') Object.defineProperty(result, key, { value, enumerable: true })
    else result[key] = value
  }
  return result
}

/** The rendering of one node. */
class NodeWork {
  readonly problems: Problem[] = []
  readonly #renderer: Renderer
  readonly #compiledOf: (value: Value) => Compiled | undefined
  readonly #root: Branch
  readonly #facts: NodeFacts
  readonly #done = new Map<FreshLeaf, unknown>()
  readonly #underWay = new Set<FreshLeaf>()
  readonly #broken = new Set<FreshLeaf>()
  #sawSecret = false

  constructor(renderer: Renderer, compiledOf: (value: Value) => Compiled | undefined, root: Branch, facts: NodeFacts) {
    this.#renderer = renderer
    this.#compiledOf = compiledOf
    this.#root = root
    this.#facts = facts
  }

  readonly build = (compiled: Compiled): unknown => {
    if (compiled.kind === 'fixed') return compiled.value
    if (compiled.kind === 'branch') return gather(compiled.children, this.build)
    if (!this.#done.has(compiled)) this.#done.set(compiled, this.#buildLeaf(compiled))
    return this.#done.get(compiled)
  }

  #buildLeaf(leaf: FreshLeaf): unknown {
    this.#underWay.add(leaf)
    try {
      return this.#checked(leaf, this.#render(leaf.raw, this.#context(leaf.references)))
    } catch (error) {
      if (!(error instanceof MusterError) && !(error instanceof DependsOnBroken)) throw error
      this.#broken.add(leaf)
      if (error instanceof MusterError) this.#report(leaf, error.message)
      return undefined
    } finally {
      this.#underWay.delete(leaf)
    }
  }

  #report({ origin: { layer, line, column }, path }: FreshLeaf, message: string): void {
    this.problems.push({ file: layer.file, line, column, path: path.join('.'), nodes: [this.#facts.name], message })
  }

  /** What a lone expression gives is a number where text is wanted: then it is taken as text. */
  #checked({ schema }: FreshLeaf, rendered: unknown): unknown {
    if (schema === undefined) return rendered
    const checked = validateValue(schema, rendered)
    if ('value' in checked) return checked.value
    const asText = validateValue(schema, textOf(rendered))
    if ('value' in asText) return asText.value
    throw new MusterError('TEMPLATE_INVALID', checked.message)
  }

  #render(raw: unknown, context: Plain): unknown {
    if (typeof raw === 'string') return isTemplate(raw) ? this.#renderText(raw, context) : raw
    if (Array.isArray(raw)) return raw.map(item => this.#render(item, context))
    if (isMap(raw) && !('$secret' in raw)) return gather(Object.entries(raw), item => this.#render(item, context))
    return raw
  }

  #renderText(template: string, context: Plain): unknown {
    if (this.#sawSecret) refuseSecrets(template, context)
    try {
      return this.#renderer.render(template, context)
    } catch (error) {
      if (error instanceof MusterError && error.message.startsWith('undefined value'))
        throw this.#undefinedName(template, context)
      throw error
    }
  }

  /** Only what the template mentions: building every node's whole context would cost more than rendering. */
  #context(references: readonly (readonly string[])[]): Plain {
    const context: Record<string, unknown> = {}
    for (const path of references) {
      const [head = ''] = path
      if (Object.hasOwn(this.#facts, head)) context[head] = this.#facts[head as keyof NodeFacts]
      else this.#provide(context, path)
    }
    return context
  }

  /** Puts the node's own value at this path into the context: of `vars.rack.row` as much as there is. */
  #provide(context: Record<string, unknown>, path: readonly string[]): void {
    let target = context
    let value: Value | undefined = this.#root
    for (const [depth, key] of path.entries()) {
      value = value.kind === 'branch' ? value.entries.get(key) : undefined
      if (value === undefined) return
      if (value.kind === 'leaf' || depth === path.length - 1) {
        target[key] = this.#own(value, path.slice(0, depth + 1))
        return
      }
      target = (target[key] ??= {}) as Record<string, unknown>
    }
  }

  #own(value: Value, path: readonly string[]): unknown {
    const compiled = this.#compiledOf(value)
    if (compiled === undefined) return undefined
    for (const busy of this.#underWay) {
      if (!holds(compiled, busy)) continue
      // One report for the whole circle, not one for every value in it.
      for (const leaf of this.#underWay) this.#broken.add(leaf)
      throw new MusterError('TEMPLATE_INVALID', `depends on itself through ${path.join('.')}`)
    }
    const own = this.build(compiled)
    for (const leaf of this.#broken) if (holds(compiled, leaf)) throw new DependsOnBroken()
    this.#sawSecret ||= hasSecret(own)
    return own
  }

  #undefinedName(template: string, context: Plain): MusterError {
    const missing = undefinedPath(template, context) ?? ['a name']
    if (missing[0] === 'index')
      return new MusterError('TEMPLATE_INVALID', `index is not defined: ${this.#facts.name} has no number in its name`)
    const parent = valueAt(this.#root, missing.slice(0, -1))
    const near = [
      ...(missing.length === 1 ? Object.keys(this.#facts) : []),
      ...(parent?.kind === 'branch' ? parent.entries.keys() : []),
    ]
    return new MusterError(
      'TEMPLATE_INVALID',
      `${missing.join('.')} is not defined${didYouMean(missing.at(-1) ?? '', near)}`,
    )
  }
}

/** A value that is nothing but a secret is that secret; as a part of something else it would be ciphertext to nobody's use. */
function refuseSecrets(template: string, context: Plain): void {
  const paths = referencedPaths(template)
  const secret = paths.find(path => path.some((_, depth) => isSecret(valueIn(context, path.slice(0, depth + 1)))))
  const inside = secret ?? paths.find(path => hasSecret(valueIn(context, path)))
  if (inside === undefined) return
  const isAlone =
    paths.length === 1 && /^\{\{\s*[\w.]+\s*\}\}$/.test(template.trim()) && isSecret(valueIn(context, inside))
  if (!isAlone)
    throw new MusterError('TEMPLATE_INVALID', `${inside.join('.')} is a secret: it cannot be part of another value`)
}

/** The value itself is fine; what it is made of has been reported already. */
class DependsOnBroken extends Error {}

function textOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(textOf)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
}

const isSecret = (value: unknown): boolean => isMap(value) && Object.hasOwn(value, '$secret')

const hasSecret = (value: unknown): boolean =>
  isSecret(value) ||
  (Array.isArray(value) ? value.some(hasSecret) : isMap(value) && Object.values(value).some(hasSecret))

const holds = (compiled: Compiled, leaf: FreshLeaf): boolean =>
  compiled === leaf || (compiled.kind === 'branch' && compiled.children.some(([, child]) => holds(child, leaf)))
