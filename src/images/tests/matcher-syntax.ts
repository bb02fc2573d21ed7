import { didYouMean } from '../../lib/suggest.ts'
import type { MapTree, Place, Tree } from '../../lib/yaml/tree.ts'
import { goRegExp } from './go-regexp.ts'
import { pathProblem } from './gjson.ts'
import { type Argument, MATCHERS } from './matchers.ts'
import { parsePattern } from './patterns.ts'
import { parseConstraint } from './semver.ts'

export type Complain = (place: Place, path: readonly string[], message: string) => void

interface Where {
  readonly path: readonly string[]
  /** A list here is a list of patterns. */
  readonly output: boolean
  readonly complain: Complain
}

/** Everything that is wrong with a matcher, before anything is run. */
export function checkMatcher(tree: Tree, where: Where): void {
  const { path, output, complain } = where
  if (tree.kind === 'scalar') return checkValue(tree, path, complain)
  if (tree.kind === 'list') {
    for (const [at, item] of tree.items.entries()) {
      if (output) checkPattern(item, below(where, at))
      else checkMatcher(item, below(where, at))
    }
    return undefined
  }
  if (tree.entries.size !== 1) {
    const what = tree.entries.size === 0 ? 'is empty' : `has ${[...tree.entries.keys()].join(' and ')}`
    return complain(tree, path, `${what}: it must be one matcher; several go into the list of an and or or`)
  }
  for (const [name, entry] of tree.entries) {
    const known = Object.hasOwn(MATCHERS, name) ? MATCHERS[name] : undefined
    if (known === undefined)
      complain(entry, [...path, name], `unknown matcher${didYouMean(name, Object.keys(MATCHERS))}`)
    else checkArgument(known.argument, entry.value, below(where, name))
  }
  return undefined
}

/** Values that are compared as they are: no secrets, and no empty one by accident. */
export function checkValue(tree: Tree, path: readonly string[], complain: Complain): void {
  if (tree.kind === 'list')
    for (const [at, item] of tree.items.entries()) checkValue(item, [...path, `${at}`], complain)
  else if (tree.kind === 'map')
    for (const [key, entry] of tree.entries) checkValue(entry.value, [...path, key], complain)
  else if (tree.tag !== undefined) complain(tree, path, 'a secret cannot stand in a test')
  else if (tree.value === null) complain(tree, path, 'is empty: give it a value, or take it away')
}

const below = (where: Where, key: string | number): Where => ({ ...where, path: [...where.path, String(key)] })

function checkArgument(argument: Argument, tree: Tree, where: Where): void {
  const { path, complain } = where
  const value = tree.kind === 'scalar' ? tree.value : undefined
  switch (argument) {
    case 'text':
      if (typeof value !== 'string') complain(tree, path, 'must be text: write it in quotes')
      return
    case 'regexp':
      return checkExpression(tree, where, goRegExp)
    case 'constraint':
      if (typeof value !== 'string' || parseConstraint(value) === undefined)
        complain(tree, path, 'is not a constraint such as ">=1.2.0 <2.0.0"')
      return
    case 'number':
      if (typeof value !== 'number') complain(tree, path, 'must be a number')
      return
    case 'length':
      if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
        complain(tree, path, 'must be a whole number')
      return
    case 'value':
      return checkValue(tree, path, complain)
    case 'matcher':
      // What is asked of an element is not asked of the lines it stands in; a `not` asks the same as what is in it.
      return checkMatcher(tree, { ...where, output: where.output && path.at(-1) === 'not' })
    case 'matchers': {
      if (tree.kind !== 'list') return complain(tree, path, 'must be a list')
      const output = where.output && (path.at(-1) === 'and' || path.at(-1) === 'or')
      for (const [at, item] of tree.items.entries()) checkMatcher(item, { ...below(where, at), output })
      return
    }
    case 'patterns':
      if (tree.kind !== 'list') return complain(tree, path, 'must be a list')
      for (const [at, item] of tree.items.entries()) checkPattern(item, below(where, at))
      return
    case 'keys':
    case 'paths':
      if (tree.kind !== 'map' || tree.entries.size === 0) return complain(tree, path, 'must be a map')
      checkKeys(tree, argument, where)
  }
}

function checkKeys(tree: MapTree, argument: 'keys' | 'paths', where: Where): void {
  for (const [key, entry] of tree.entries) {
    const inner = { ...below(where, key), output: false }
    const problem = argument === 'paths' ? pathProblem(key) : undefined
    if (problem === undefined) checkMatcher(entry.value, inner)
    else where.complain(entry, inner.path, problem)
  }
}

function checkPattern(tree: Tree, where: Where): void {
  if (tree.kind === 'scalar' && typeof tree.value === 'number') return
  checkExpression(tree, where, parsePattern)
}

function checkExpression(tree: Tree, { path, complain }: Where, parse: (text: string) => unknown): void {
  if (tree.kind !== 'scalar' || typeof tree.value !== 'string' || tree.tag !== undefined)
    return complain(tree, path, 'must be text: write it in quotes')
  try {
    parse(tree.value)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    complain(tree, path, `is not a regular expression: ${error.message}`)
  }
  return undefined
}
