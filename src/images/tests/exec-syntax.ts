import { didYouMean } from '../../lib/suggest.ts'
import type { MapTree, Tree } from '../../lib/yaml/tree.ts'
import type { ExecTest } from './check.ts'
import type { Complain } from './matcher-syntax.ts'
import { millisecondsOf, numberOf, textOf, textsOf } from './tree-values.ts'

/**
 * Programs as tests, which goss does not have:
 *
 *     exec:
 *       posix:
 *         run: [./run-tests, --all]   # or a text for /bin/sh -c
 *         reads: tap                  # exit unless said; junit, oscap
 *         on: inside                  # unless said; outside
 *         timeout: 600000             # ten minutes unless said
 *         exit-codes: [0]
 *         min-score: 90               # oscap only
 */
type Exec = Pick<ExecTest, 'run' | 'reads' | 'on' | 'timeout' | 'minScore' | 'exitCodes'>

const KEYS = ['run', 'reads', 'on', 'timeout', 'exit-codes', 'min-score', 'title', 'meta']
const READS = ['exit', 'tap', 'junit', 'oscap'] as const
const SIDES = ['inside', 'outside'] as const
const TEN_MINUTES = 600_000

/** Nothing where it does not say what to run. */
export function readExec(tree: MapTree, complain: Complain): Exec | undefined {
  for (const [key, entry] of tree.entries)
    if (!KEYS.includes(key)) complain(entry, [key], `unknown attribute${didYouMean(key, KEYS)}`)
  const read = <T>(key: string, of: (value: Tree, say: (message: string) => void) => T): T | undefined => {
    const value = tree.entries.get(key)?.value
    return value && of(value, message => complain(value, [key], message))
  }
  const reads = read('reads', oneOf(READS)) ?? 'exit'
  const minScore = read('min-score', (value, say) => {
    if (reads !== 'oscap') say('is for what reads oscap')
    return numberOf(value, say, 0, 100, false)
  })
  if (!tree.entries.has('run')) return undefined
  return {
    run: read('run', runOf) ?? '',
    reads,
    on: read('on', oneOf(SIDES)) ?? 'inside',
    timeout: read('timeout', millisecondsOf) ?? TEN_MINUTES,
    exitCodes: read('exit-codes', codesOf) ?? [0],
    ...(minScore !== undefined && { minScore }),
  }
}

function runOf(tree: Tree, say: (message: string) => void): readonly string[] | string | undefined {
  const run = tree.kind === 'list' ? textsOf(tree, say) : textOf(tree, say)
  if (run?.length === 0) say('must not be empty')
  return run
}

function codesOf(tree: Tree, say: (message: string) => void): number[] | undefined {
  if (tree.kind === 'list' && tree.items.length > 0)
    return tree.items.flatMap(item => numberOf(item, say, 0, 255) ?? [])
  say('must be a list of numbers')
  return undefined
}

function oneOf<T extends string>(words: readonly T[]): (tree: Tree, say: (message: string) => void) => T | undefined {
  return (tree, say) => {
    const found = tree.kind === 'scalar' ? words.find(word => word === tree.value) : undefined
    if (found === undefined) say(`must be one of ${words.join(', ')}`)
    return found
  }
}
