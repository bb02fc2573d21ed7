import { z } from 'zod'
import { didYouMean } from '../lib/suggest.ts'
import type { MapEntry, Place, Tree } from '../lib/yaml/tree.ts'
import type { Problem } from './problems.ts'
import { hideSecrets } from './paths.ts'
import { NO_SECRET, NO_TEMPLATE } from './schema.ts'

/** Checks one file, or one entry of one, against its schema; every problem at the line and column it is about. */
export function validateTree(file: string, tree: Tree, schema: z.ZodType): Problem[] {
  const problems: Problem[] = []
  const value = plainOf(tree, (place, path, message) => problems.push({ file, ...placeOf(place), path, message }))
  if (schema.safeParse(value).success) return problems
  // Once more, for the words: remembering every input would slow down the files that are right.
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return problems
  return [
    ...problems,
    ...result.error.issues.flatMap(bestIssues).flatMap(issue => problemsOf(file, tree, schema, issue)),
  ]
}

/** What is wrong with one value, in words, or undefined: for values that only exist once a template has been rendered. */
export function validateValue(schema: z.ZodType, value: unknown): { value: unknown } | { message: string } {
  const result = schema.safeParse(value)
  if (result.success) return { value: result.data }
  const [issue] = result.error.issues.flatMap(bestIssues)
  return { message: issue === undefined ? 'is not valid' : `${JSON.stringify(hideSecrets(value))} ${wordsOf(issue)}` }
}

/**
 * The plain value of a tree. `args+:` becomes `args:` (same schema); an encrypted value becomes `{ $secret }`.
 */
export function plainOf(tree: Tree, complain: Complain = () => {}, path = ''): unknown {
  if (tree.kind === 'scalar') return tree.tag === undefined ? tree.value : { $secret: String(tree.value) }
  if (tree.kind === 'list') {
    for (const item of tree.items) {
      if (item.kind === 'scalar' && item.tag !== undefined)
        complain(item, path, 'a secret cannot stand in a list: give it a key of its own')
    }
    return tree.items.map((item, index) => plainOf(item, complain, `${path}.${index}`))
  }
  const result: Record<string, unknown> = Object.create(null)
  for (const [key, entry] of tree.entries) {
    const { name, appends } = splitKey(key)
    const here = path === '' ? name : `${path}.${name}`
    if (appends && tree.entries.has(name)) complain(entry, here, `stands here twice, as ${name} and as ${key}`)
    // This is how we note an encrypted value; clear text must not pass for one.
    if (entry.value.kind === 'map' && entry.value.entries.has('$secret')) complain(entry.value, here, NO_SECRET)
    else if (appends && entry.value.kind !== 'list')
      complain(entry, here, 'only a list can be appended to: write a list after +:')
    else result[name] = plainOf(entry.value, complain, here)
  }
  return result
}

type Complain = (place: Place, path: string, message: string) => void

/** 'args+' → args, appending. */
export function splitKey(key: string): { readonly name: string; readonly appends: boolean } {
  return key.endsWith('+') ? { name: key.slice(0, -1), appends: true } : { name: key, appends: false }
}

type Issue = z.core.$ZodIssue

function problemsOf(file: string, root: Tree, schema: z.ZodType, issue: Issue): Problem[] {
  const path = issue.path.map(String)
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
  const isKey = issue.code === 'invalid_key'
  const place = isKey ? entryOf(treeAt(root, path.slice(0, -1)), path.at(-1) ?? '') : treeAt(root, path)
  return [{ file, ...placeOf(place ?? nearest(root, path)), path: path.join('.'), message: wordsOf(issue) }]
}

/**
 * Of a union's complaints, those of the alternative that came furthest: not the one that wanted another type at the top,
 * and not that it is no template.
 */
function bestIssues(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const alternatives = issue.errors.map(errors => errors.flatMap(bestIssues))
  const candidates = alternatives.filter(errors => errors.some(error => error.message !== NO_TEMPLATE))
  const further =
    candidates.find(errors => errors.some(error => error.path.length > 0)) ??
    candidates.find(errors => errors.some(error => error.code !== 'invalid_type'))
  return (further ?? candidates[0] ?? []).map(inner => ({ ...inner, path: [...issue.path, ...inner.path] }))
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
      if (issue.message.startsWith('must ')) return issue.message
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
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return expandUnions(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodPipe) return [schema.in, schema.out].flatMap(side => expandUnions(side as z.ZodType))
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
