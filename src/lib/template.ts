import { Environment } from 'minijinja-js'
import { MusterError, messageOf } from './errors.ts'
import { addToAddress } from './ip.ts'

/**
 * The one seam to the template language (Jinja, through minijinja): undefined names are errors, and the work a template
 * may do is bounded. A string that is one expression keeps the type of its value:
 *
 *     renderer.render('{{ index + 1 }}', { index: 4 })             → 5
 *     renderer.render('rack{{ index // 32 }}', { index: 40 })      → 'rack1'
 *     renderer.render("{{ '10.77.1.0' | ip_add(index) }}", { index: 300 }) → '10.77.2.44'
 */
export interface Renderer {
  /** Throws MusterError TEMPLATE_INVALID. */
  render(template: string, context: Readonly<Record<string, unknown>>): unknown
  /** Of a whole file: always text, with every newline it has. */
  renderText(template: string, context: Readonly<Record<string, unknown>>): string
  /**
   * The same of a template that is rendered many times, and may look at every node of a site. `id` is another for another
   * content; an error begins with the line.
   */
  renderFile(id: string, template: string, context: Readonly<Record<string, unknown>>): string
}

/** Steps one template may take: thousands of times what a value needs, a blink of time. */
const FUEL = 100_000
/** A line for each of a hundred thousand nodes. */
const FILE_FUEL = 50_000_000

export const isTemplate = (text: string): boolean => text.includes('{{') || text.includes('{%')

export function createRenderer(): Renderer {
  const environment = new Environment()
  environment.undefinedBehavior = 'strict'
  environment.fuel = FUEL
  // A filter or function that throws would abort the whole WebAssembly instance: its failure is kept and thrown afterwards.
  let failure: unknown
  const harmless =
    <Value>(work: (...args: unknown[]) => Value, instead: Value) =>
    (...args: unknown[]): Value => {
      try {
        return work(...args)
      } catch (error) {
        failure ??= error
        return instead
      }
    }
  const addFilter = (name: string, filter: (...args: unknown[]) => string): void =>
    environment.addFilter(name, harmless(filter, ''))
  addFilter('ip_add', (address, offset) => addToAddress(String(address), Number(offset)))
  addFilter('format', (pattern, ...values) => format(String(pattern), values))

  /** What was learnt of each template: that it is one expression, or that it is registered under its own text. */
  const known = new Map<string, string | undefined>()
  const evaluate = (template: string, context: Readonly<Record<string, unknown>>): unknown => {
    if (!known.has(template)) {
      const found = soleExpression(template)
      if (found === undefined) environment.addTemplate(template, template)
      known.set(template, found)
    }
    const expression = known.get(template)
    // A bare name needs no engine, and is what most templates of large sites are.
    if (expression !== undefined && Object.hasOwn(context, expression)) return plain(context[expression])
    return expression === undefined
      ? environment.renderTemplate(template, context)
      : plain(environment.evalExpr(expression, context))
  }

  const explained = <Value>(work: () => Value): Value => {
    failure = undefined
    try {
      const value = work()
      if (failure !== undefined) throw failure
      return value
    } catch (error) {
      throw new MusterError('TEMPLATE_INVALID', reasonOf(failure ?? error), { cause: error })
    }
  }

  const files = new Set<string>()
  const renderFile = (id: string, template: string, context: Readonly<Record<string, unknown>>): string => {
    // A name that ends in .html or .json would have its values escaped.
    const name = `${id}#`
    environment.fuel = FILE_FUEL
    environment.keepTrailingNewline = true
    try {
      if (!files.has(id)) environment.addTemplate(name, template)
      files.add(id)
      return environment.renderTemplate(
        name,
        mapFunctions(context, work => harmless(work, [])),
      )
    } catch (error) {
      const line = /#:(\d+)\)/.exec(messageOf(error))?.[1]
      throw line === undefined ? error : new Error(`line ${line}: ${reasonOf(failure ?? error)}`, { cause: error })
    } finally {
      environment.fuel = FUEL
      environment.keepTrailingNewline = false
    }
  }

  return {
    renderFile: (id, template, context) => explained(() => renderFile(id, template, context)),
    render: (template, context) => explained(() => evaluate(template, context)),
    renderText: (template, context) =>
      explained(() => {
        environment.keepTrailingNewline = true
        try {
          return environment.renderStr(template, context)
        } finally {
          environment.keepTrailingNewline = false
        }
      }),
  }
}

/**
 * The names a template may refer to, as paths; more than it really does at worst (keywords count), never fewer:
 * "a {{ vars.rack }} {{ vars['row'] }}" → [['vars', 'rack'], ['vars', 'row']]
 */
export function referencedPaths(template: string): string[][] {
  const found: string[][] = []
  for (const [, code = ''] of template.matchAll(/\{[{%](.*?)[%}]\}/gs)) {
    for (const [text, filter, path] of code.matchAll(TOKENS)) {
      if (filter === undefined && path !== undefined) found.push(pathOf(text))
    }
  }
  return found
}

/** Texts, filters (`| name`), tests (`is name`), and paths (`a.b['c']`): in this order, so that no name is found inside a text. */
const TOKENS =
  /'[^']*'|"[^"]*"|(\|\s*\w+|(?<![\w.])is\s+(?:not\s+)?\w+)|((?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\s*(?:'[^']*'|"[^"]*")\s*\])*)/g

const pathOf = (text: string): string[] =>
  [...text.matchAll(/[A-Za-z_]\w*|'([^']*)'|"([^"]*)"/g)].map(([name, single, double]) => single ?? double ?? name)

/** Without paths that a shorter one brings along: vars and vars.rack → vars. */
export function withoutCovered(paths: readonly (readonly string[])[]): (readonly string[])[] {
  return paths.filter(
    path => !paths.some(other => other.length < path.length && other.every((key, depth) => key === path[depth])),
  )
}

/** Of a template that could not be rendered because something is not defined: what that is. */
export function undefinedPath(template: string, context: Readonly<Record<string, unknown>>): string[] | undefined {
  const own = namesOfItsOwn(template)
  return referencedPaths(template).find(path => !own.has(path[0] ?? '') && valueIn(context, path) === undefined)
}

/** The value at a path of a context: vars, then rack. */
export function valueIn(context: unknown, path: readonly string[]): unknown {
  let value = context
  for (const key of path)
    value =
      typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined
  return value
}

/** Words of the language, and what a template itself defines in a loop or with `set`: these are not looked up anywhere. */
function namesOfItsOwn(template: string): Set<string> {
  const defined = [...template.matchAll(/\{%-?\s*(?:for|set)\s+([\w\s,]+?)\s*(?:\bin\b|=)/g)]
  return new Set([...KEYWORDS, ...defined.flatMap(match => match[1]?.split(/[\s,]+/) ?? [])])
}

const KEYWORDS =
  'and or not in is if else elif endif for endfor set endset true false none True False None loop range'.split(' ')

const mapFunctions = (
  context: Readonly<Record<string, unknown>>,
  wrap: (work: (...args: unknown[]) => unknown) => unknown,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(context).map(([key, value]) => [
      key,
      typeof value === 'function' ? wrap(value as (...args: unknown[]) => unknown) : value,
    ]),
  )

/** '{{ a }}' → 'a'; undefined when there is any text around it or more than one expression. */
function soleExpression(template: string): string | undefined {
  const match = /^\{\{-?((?:(?!\}\}|\{\{).)*?)-?\}\}$/s.exec(template.trim())
  return match?.[1]?.trim()
}

/** minijinja answers with Map and BigInt; we want what JSON can say. */
function plain(value: unknown): unknown {
  if (value === undefined) throw new Error('undefined value')
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), plain(item)]))
  if (Array.isArray(value)) return value.map(plain)
  return value
}

/** printf's %d, %s, %x and %% with flags 0 and width: format('n%03d', [7]) → 'n007' */
function format(pattern: string, values: readonly unknown[]): string {
  let next = 0
  return pattern.replaceAll(/%(0?)(\d*)([dsxX%])/g, (_, zero: string, width: string, kind: string) => {
    if (kind === '%') return '%'
    const value = values[next++]
    const text = kind === 's' ? String(value) : Math.trunc(Number(value)).toString(kind === 'd' ? 10 : 16)
    return (kind === 'X' ? text.toUpperCase() : text).padStart(Number(width), zero === '0' ? '0' : ' ')
  })
}

/** The first line, without the parts that speak of minijinja's own idea of where. */
function reasonOf(error: unknown): string {
  const [line = ''] = messageOf(error).split('\n')
  return line.replace(/ \(in .*$/, '').replace('engine ran out of fuel', 'does too much work for one value')
}
