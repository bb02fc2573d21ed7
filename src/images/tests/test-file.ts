import { dirname, join, matchesGlob } from 'node:path/posix'
import { didYouMean } from '../../lib/suggest.ts'
import { readYaml } from '../../lib/yaml/read.ts'
import type { MapEntry, MapTree, Place, Tree } from '../../lib/yaml/tree.ts'
import type { Problem } from '../../site/problems.ts'
import type { Check, ExecTest } from './check.ts'
import { readExec } from './exec-syntax.ts'
import { type Complain, checkMatcher, checkValue } from './matcher-syntax.ts'
import type { TestPlace } from './subject.ts'
import { CHECK_KINDS, COMMON, type CheckKind, KINDS, PLACES } from './syntax.ts'
import { flagOf, millisecondsOf, plainOf, textOf, textsOf } from './tree-values.ts'

/** What one file says; where it has problems, what is right is there all the same. */
export interface TestFile {
  readonly checks: readonly Check[]
  readonly execs: readonly ExecTest[]
  readonly includes: readonly Include[]
  readonly problems: readonly Problem[]
}

interface Include {
  readonly path: string
  readonly skip: boolean
}

/** `all` are the files of the folder: what a gossfile may name. */
export function readTestFile(at: string, path: string, content: Buffer, all: readonly string[]): TestFile {
  const { tree, problems } = readYaml(content.toString('utf8'))
  const reader = new FileReader(`${at}/${path}`, path, all)
  for (const { line, column, message } of problems) reader.complain({ line, column }, [], message)
  if (tree !== undefined) reader.read(tree)
  return reader
}

const TOP_KEYS = ['where', 'gossfile', 'exec', ...CHECK_KINDS]
const isKind = (word: string): word is CheckKind => (CHECK_KINDS as readonly string[]).includes(word)

const NOT_BOOTED = 'is of a system that runs: write where: container, or vm, at the top of the file'

class FileReader implements TestFile {
  readonly checks: Check[] = []
  readonly execs: ExecTest[] = []
  readonly includes: Include[] = []
  readonly problems: Problem[] = []
  readonly #file: string
  readonly #path: string
  readonly #all: readonly string[]
  #place: TestPlace = 'root'

  constructor(file: string, path: string, all: readonly string[]) {
    this.#file = file
    this.#path = path
    this.#all = all
  }

  readonly complain: Complain = ({ line, column }, path, message) => {
    this.problems.push({ file: this.#file, line, column, path: path.join('.'), message })
  }

  read(tree: Tree): void {
    if (tree.kind !== 'map') return this.complain(tree, [], 'must be a map of resources, such as file: and service:')
    this.#readWhere(tree.entries.get('where'))
    for (const [key, entry] of tree.entries) {
      if (key === 'where') continue
      if (!TOP_KEYS.includes(key)) this.complain(entry, [key], `unknown resource${didYouMean(key, TOP_KEYS)}`)
      else this.#readResources(key, entry.value)
    }
    return undefined
  }

  #readWhere(entry: MapEntry | undefined): void {
    if (entry === undefined) return
    const value = entry.value.kind === 'scalar' ? entry.value.value : undefined
    const place = PLACES.find(known => known === value)
    if (place === undefined) this.complain(entry.value, ['where'], `must be one of ${PLACES.join(', ')}`)
    else this.#place = place
  }

  #readResources(kind: string, tree: Tree): void {
    if (tree.kind !== 'map') return this.complain(tree, [kind], 'must be a map')
    for (const [name, entry] of tree.entries) {
      const path = [kind, name]
      const empty = entry.value.kind === 'scalar' && entry.value.value === null
      const attributes: Tree = empty ? { ...entry.value, kind: 'map', entries: new Map() } : entry.value
      if (name === '' || name.includes('\0')) this.complain(entry, path, 'is not a name')
      else if (attributes.kind !== 'map') this.complain(entry.value, path, 'must be a map of attributes')
      else if (kind === 'gossfile') this.#readInclude(name, entry, attributes)
      else if (kind === 'exec') this.#readExec(name, entry, attributes)
      else if (isKind(kind)) this.#readCheck(kind, name, entry, attributes)
    }
    return undefined
  }

  #readExec(name: string, entry: Place, tree: MapTree): void {
    const exec = readExec(tree, (place, path, message) => this.complain(place, ['exec', name, ...path], message))
    if (exec === undefined) this.complain(entry, ['exec', name, 'run'], 'is missing')
    else this.execs.push({ ...this.#identity('exec', name, entry), ...exec })
  }

  #identity(kind: string, name: string, { line }: Place): Pick<Check, 'id' | 'file' | 'line' | 'place' | 'name'> {
    return { id: `${this.#path}: ${kind} ${name}`, file: this.#file, line, place: this.#place, name }
  }

  #readInclude(name: string, entry: Place, tree: MapTree): void {
    const path = ['gossfile', name]
    const given = this.#settings(path, tree, { ...COMMON, file: 'text' })
    const pattern = typeof given['file'] === 'string' ? given['file'] : name
    const full = join(dirname(this.#path), pattern)
    const found = this.#all.filter(file => file === full || matchesGlob(file, full))
    if (pattern.startsWith('/') || full.startsWith('..'))
      this.complain(entry, path, 'must name a file in the folder of the tests')
    else if (found.length === 0) this.complain(entry, path, `there is no file ${full} in the folder of the tests`)
    for (const file of found) this.includes.push({ path: file, skip: given['skip'] === true })
  }

  #readCheck(kind: CheckKind, name: string, entry: Place, tree: MapTree): void {
    const { attributes, required, booted = [], target = '', form } = KINDS[kind]
    const path = [kind, name]
    const { title, skip, meta: _meta, ...settings } = this.#settings(path, tree, { ...attributes, ...COMMON })
    for (const attribute of required)
      if (!tree.entries.has(attribute)) this.complain(entry, [...path, attribute], 'is missing')
    for (const attribute of this.#place === 'root' ? booted : []) {
      const given = tree.entries.get(attribute)
      if (given !== undefined) this.complain(given, [...path, attribute], NOT_BOOTED)
    }
    const looked = settings[target] ?? name
    if (form !== undefined && typeof looked === 'string' && !form[0].test(looked))
      this.complain(tree.entries.get(target)?.value ?? entry, target in settings ? [...path, target] : path, form[1])
    const expected: Record<string, unknown> = {}
    for (const [attribute, type] of Object.entries(attributes)) {
      const value = tree.entries.get(attribute)?.value
      if (value !== undefined && (type === 'value' || type === 'output')) expected[attribute] = plainOf(value)
    }
    if (Object.keys(expected).length === 0 && required.length === 0)
      this.complain(entry, path, 'checks nothing: give it an attribute')
    const check = { ...this.#identity(kind, name, entry), kind, skip: skip === true, expected, settings }
    this.checks.push(typeof title === 'string' ? { ...check, title } : check)
  }

  /** Checks every attribute; gives the values of those that are settings. */
  #settings(
    path: readonly string[],
    tree: MapTree,
    known: Readonly<Record<string, string>>,
  ): Readonly<Record<string, unknown>> {
    const settings: Record<string, unknown> = {}
    for (const [key, entry] of tree.entries) {
      const here = [...path, key]
      const type = Object.hasOwn(known, key) ? known[key] : undefined
      if (type === undefined) this.complain(entry, here, `unknown attribute${didYouMean(key, Object.keys(known))}`)
      else if (type === 'value' || type === 'output')
        checkMatcher(entry.value, { path: here, output: type === 'output', complain: this.complain })
      else settings[key] = this.#setting(type, entry.value, here)
    }
    return settings
  }

  #setting(type: string, tree: Tree, path: readonly string[]): unknown {
    if (type === 'any') {
      checkValue(tree, path, this.complain)
      return plainOf(tree)
    }
    const reader = { text: textOf, texts: textsOf, flag: flagOf, milliseconds: millisecondsOf }[type]
    return reader?.(tree, message => this.complain(tree, path, message))
  }
}
