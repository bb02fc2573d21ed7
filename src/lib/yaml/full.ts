import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter } from 'yaml'
import type { Pair, Scalar as YamlScalar, YAMLError, YAMLMap, YAMLSeq } from 'yaml'
import { messageOf } from '../errors.ts'
import { AGE_TAG, MAX_DEPTH } from './limits.ts'
import { parseNodes } from './parse.ts'
import type { ListTree, MapEntry, MapTree, Place, Scalar, ScalarTree, Tree, YamlProblem, YamlResult } from './tree.ts'

const NO_ANCHORS = 'anchors and aliases are not used in site files; put shared values into a group'
const NO_MERGE = 'merge keys (<<) are not used in site files; put shared values into a group'
const NO_DOCUMENTS = 'a file holds one YAML document; put what follows into a file of its own'
const TOO_DEEP = `is nested more than ${MAX_DEPTH} levels deep`

/** Reads any YAML with the `yaml` package: thorough and slow. Gives the tree, or every problem in the order of lines. */
export function readFull(text: string): YamlResult {
  const lines = new LineCounter()
  const problems: YamlProblem[] = []
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(Math.max(0, offset))
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const report = (offset: number, message: string): void => {
    problems.push({ ...placeAt(offset), message })
  }

  let tree: Tree | undefined
  try {
    const document = parseNodes(text, { lineCounter: lines })
    for (const error of document.errors) report(error.pos[0], messageFor(error))
    if (document.contents !== null && !isEmptyPlain(document.contents))
      tree = new Converter(placeAt, report).convert(document.contents, 0, 1)
  } catch (error) {
    report(0, `cannot be read: ${oneLine(messageOf(error))}`)
  }
  if (problems.length > 0) return { problems: inOrder(problems) }
  return tree === undefined ? { problems } : { tree, problems }
}

class Converter {
  readonly #placeAt: (offset: number) => Place
  readonly #report: (offset: number, message: string) => void

  constructor(placeAt: (offset: number) => Place, report: (offset: number, message: string) => void) {
    this.#placeAt = placeAt
    this.#report = report
  }

  /** `fallback` is the offset of a value that is not there at all, as in `{ key }`; `depth` counts collections. */
  convert(node: unknown, fallback: number, depth: number): Tree {
    const offset = offsetOf(node, fallback)
    const place = this.#placeAt(offset)
    if (isScalar(node)) return this.#scalar(node, offset, place)
    if (isMap(node)) return this.#map(node, offset, place, depth)
    if (isSeq(node)) return this.#list(node, offset, place, depth)
    if (isAlias(node)) this.#report(offset, NO_ANCHORS)
    return { kind: 'scalar', value: null, ...place }
  }

  #scalar(node: YamlScalar, offset: number, place: Place): ScalarTree {
    this.#refuseAnchor(node, offset)
    if (node.tag === AGE_TAG) return { kind: 'scalar', value: node.source ?? '', tag: AGE_TAG, ...place }
    if (node.tag !== undefined) this.#report(offset, unknownTag(node.tag))
    return { kind: 'scalar', value: valueOf(node), ...place }
  }

  #list(node: YAMLSeq, offset: number, place: Place, depth: number): ListTree {
    const items: Tree[] = []
    if (this.#mayDescend(node, offset, depth))
      for (const item of node.items) items.push(this.convert(item, offset, depth + 1))
    return { kind: 'list', items, ...place }
  }

  #map(node: YAMLMap, offset: number, place: Place, depth: number): MapTree {
    const entries = new Map<string, MapEntry>()
    if (this.#mayDescend(node, offset, depth)) for (const pair of node.items) this.#entry(pair, entries, offset, depth)
    return { kind: 'map', entries, ...place }
  }

  #entry(pair: Pair, entries: Map<string, MapEntry>, fallback: number, depth: number): void {
    const offset = offsetOf(pair.key, fallback)
    const key = this.#key(pair.key, offset)
    const value = this.convert(pair.value, offset, depth + 1)
    if (key === undefined) return
    const first = entries.get(key)
    if (first === undefined) entries.set(key, { value, ...this.#placeAt(offset) })
    else this.#report(offset, `the key ${JSON.stringify(key)} is already on line ${first.line}`)
  }

  #key(node: unknown, offset: number): string | undefined {
    if (isAlias(node)) {
      this.#report(offset, NO_ANCHORS)
    } else if (isScalar(node)) {
      this.#refuseAnchor(node, offset)
      if (node.tag !== undefined) this.#report(offset, 'a key has no tag')
      const key = node.source ?? ''
      if (key !== '<<' || node.type !== 'PLAIN') return key
      this.#report(offset, NO_MERGE)
    } else {
      this.#report(offset, 'a key is a single word or string, not a map or a list')
    }
    return undefined
  }

  #mayDescend(node: YAMLMap | YAMLSeq, offset: number, depth: number): boolean {
    this.#refuseAnchor(node, offset)
    if (node.tag === AGE_TAG) this.#report(offset, `${AGE_TAG} marks a string, not a map or a list`)
    else if (node.tag !== undefined) this.#report(offset, unknownTag(node.tag))
    if (depth > MAX_DEPTH) this.#report(offset, TOO_DEEP)
    return depth <= MAX_DEPTH
  }

  #refuseAnchor(node: { anchor?: string }, offset: number): void {
    if (node.anchor !== undefined) this.#report(offset, NO_ANCHORS)
  }
}

/** A file of comments, or of `---` alone, is empty: its document is a scalar without a single character. */
const isEmptyPlain = (node: unknown): boolean =>
  isScalar(node) && node.source === '' && node.type === 'PLAIN' && node.tag === undefined && node.anchor === undefined

const offsetOf = (node: unknown, fallback: number): number => (isNode(node) ? node.range?.[0] : undefined) ?? fallback

/** The core schema makes nothing but these; whatever else an unknown tag made is a problem reported already. */
function valueOf({ value }: YamlScalar): Scalar {
  const known = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return known ? value : null
}

const unknownTag = (tag: string): string =>
  `the tag ${tag.replace('tag:yaml.org,2002:', '!!')} is not known; only ${AGE_TAG} is`

function messageFor({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return NO_DOCUMENTS
  // The package recurses; what exhausts its stack is far deeper than MAX_DEPTH.
  if (code === 'RESOURCE_EXHAUSTION') return TOO_DEEP
  return oneLine(message)
}

const oneLine = (message: string): string => message.replaceAll(/\s*\n\s*/g, ' ').trim()

/** In the order of lines, each thing once: one stray character can make the package say the same twice. */
function inOrder(problems: readonly YamlProblem[]): YamlProblem[] {
  const seen = new Map(problems.map(problem => [`${problem.line}:${problem.column}:${problem.message}`, problem]))
  return [...seen.values()].sort((a, b) => a.line - b.line || a.column - b.column)
}
