import { z } from 'zod'
import { didYouMean } from '../lib/suggest.ts'
import type { MapEntry, Place, Tree } from '../lib/yaml/tree.ts'
import type { Problem } from './problems.ts'

/** Checks one file, or one entry of one, against its schema; every problem at the line and column it is about. */
export function validateTree(file: string, tree: Tree, schema: z.ZodType): Problem[] {
  const problems: Problem[] = []
  const value = plainOf(tree, (place, path, message) => problems.push({ file, ...placeOf(place), path, message }))
  if (schema.safeParse(value).success) return problems
  // Once more, for the words: remembering every input would slow down the files that are right.
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return problems
  return [...problems, ...result.error.issues.flatMap(issue => problemsOf(file, tree, schema, issue, []))]
}

/** What is wrong with one value, in words, or undefined: for values that only exist once a template has been rendered. */
export function validateValue(schema: z.ZodType, value: unknown): { value: unknown } | { message: string } {
  const result = schema.safeParse(value)
  if (result.success) return { value: result.data }
  const issue = result.error.issues[0]
  return { message: issue === undefined ? 'is not valid' : `${JSON.stringify(value)} ${wordsOf(bestIssue(issue))}` }
}

/**
 * The plain value of a tree. `args+:` becomes `args:` (same schema); an encrypted value becomes `{ $secret }`.
 */
export function plainOf(
  tree: Tree,
  complain: (place: Place, path: string, message: string) => void = () => {},
  path = '',
): unknown {
  if (tree.kind === 'scalar') return tree.tag === undefined ? tree.value : { $secret: String(tree.value) }
  if (tree.kind === 'list') return tree.items.map((item, index) => plainOf(item, complain, `${path}.${index}`))
  const result: Record<string, unknown> = Object.create(null)
  for (const [key, entry] of tree.entries) {
    const { name, appends } = splitKey(key)
    const here = path === '' ? name : `${path}.${name}`
    if (appends && tree.entries.has(name)) complain(entry, here, `stands here twice, as ${name} and as ${key}`)
    if (appends && entry.value.kind !== 'list')
      complain(entry, here, 'only a list can be appended to: write a list after +:')
    result[name] = plainOf(entry.value, complain, here)
  }
  return result
}

/** 'args+' → args, appending. */
export function splitKey(key: string): { readonly name: string; readonly appends: boolean } {
  return key.endsWith('+') ? { name: key.slice(0, -1), appends: true } : { name: key, appends: false }
}

type Issue = z.core.$ZodIssue

function problemsOf(
  file: string,
  root: Tree,
  schema: z.ZodType,
  found: Issue,
  prefix: readonly PropertyKey[],
): Problem[] {
  const issue = bestIssue(found)
  const path = [...prefix, ...issue.path].map(String)
  if (issue.code === 'unrecognized_keys') {
    const parent = treeAt(root, path)
    const known = knownKeys(schema, path)
    return issue.keys.map(key => ({
      file,
      ...placeOf(entryOf(parent, key) ?? parent ?? root),
      path: [...path, key].join('.'),
      message: `unknown key${didYouMean(key, known)}`,
    }))
  }
  // A bad key of a map is told at the key, a bad value at the value.
  const place =
    issue.code === 'invalid_key' ? entryOf(treeAt(root, path.slice(0, -1)), path.at(-1) ?? '') : treeAt(root, path)
  return [{ file, ...placeOf(place ?? nearest(root, path)), path: path.join('.'), message: wordsOf(issue) }]
}

/** Of a union's complaints, those of the alternative that came furthest: not the one that wanted another type at the top. */
function bestIssue(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const candidates = issue.errors.map(errors => errors.map(bestIssue))
  const best =
    candidates.find(errors => errors.some(error => error.code !== 'invalid_type' || error.path.length > 0)) ??
    candidates[0]
  const inner = best?.[0]
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
}

function wordsOf(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.message.includes('received undefined')) return 'is missing'
      if (issue.expected === 'string' && isScalar(issue.input)) return 'must be text: write it in quotes'
      return `must be ${TYPE_WORDS[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`
    case 'too_big':
      return `must be at most ${String(issue.maximum)}`
    case 'too_small':
      return issue.origin === 'string' || issue.origin === 'array'
        ? 'must not be empty'
        : `must be at least ${String(issue.minimum)}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'is not a valid key'
    default:
      return issue.message
  }
}

const isScalar = (value: unknown): boolean => typeof value === 'number' || typeof value === 'boolean'

/** The tree at a path, whether its keys append or not. */
export function treeAt(root: Tree | undefined, path: readonly string[]): Tree | undefined {
  let tree = root
  for (const key of path) {
    tree = tree?.kind === 'list' ? tree.items[Number(key)] : entryOf(tree, key)?.value
    if (tree === undefined) return undefined
  }
  return tree
}

function entryOf(tree: Tree | undefined, key: string): MapEntry | undefined {
  return tree?.kind === 'map' ? (tree.entries.get(key) ?? tree.entries.get(`${key}+`)) : undefined
}

/** For something missing: the deepest thing on the way that is there. */
function nearest(root: Tree, path: readonly string[]): Place {
  for (let length = path.length - 1; length > 0; length--) {
    const parent = treeAt(root, path.slice(0, length))
    if (parent !== undefined) return entryOf(treeAt(root, path.slice(0, length - 1)), path[length - 1] ?? '') ?? parent
  }
  return root
}

function knownKeys(schema: z.ZodType, path: readonly string[]): string[] {
  let found: z.ZodType[] = [schema]
  for (const key of path) found = found.flatMap(expandUnions).flatMap(one => child(one, key))
  return found.flatMap(expandUnions).flatMap(one => (one instanceof z.ZodObject ? Object.keys(one.shape) : []))
}

function expandUnions(schema: z.ZodType): z.ZodType[] {
  if (schema instanceof z.ZodOptional) return expandUnions(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(option => expandUnions(option as z.ZodType))
  return [schema]
}

function child(schema: z.ZodType, key: string): z.ZodType[] {
  if (schema instanceof z.ZodObject) return key in schema.shape ? [schema.shape[key] as z.ZodType] : []
  if (schema instanceof z.ZodRecord) return [schema.valueType as z.ZodType]
  if (schema instanceof z.ZodArray) return [schema.element as z.ZodType]
  return []
}

const placeOf = ({ line, column }: Place): Place => ({ line, column })
