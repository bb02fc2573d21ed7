import { fold } from '../lib/nodeset/index.ts'
import { type Plain, isContent, isMap, showValue } from './paths.ts'

/** What changes for which nodes, folded: one line per change, however many nodes it is about. */
export interface SiteDiff {
  readonly added: string
  readonly removed: string
  readonly changes: readonly FoldedChange[]
  /** How many nodes are touched in any way. */
  readonly nodes: number
}

export interface FoldedChange {
  readonly nodes: string
  readonly count: number
  readonly path: string
  /** How it changes, for people: `a → b`, `+ numa=off`, `changed (files/motd.j2)`. */
  readonly summary: string
  /** Where the new value stands. */
  readonly at?: string | undefined
}

type Values = ReadonlyMap<string, Plain>

/** `locate` tells where a node's new value was written. */
export function diffSites(
  before: Values,
  after: Values,
  locate?: (node: string, path: readonly string[]) => string | undefined,
): SiteDiff {
  const added = [...after.keys()].filter(name => !before.has(name))
  const removed = [...before.keys()].filter(name => !after.has(name))
  const changed = [...after].filter(([name, value]) => {
    const old = before.get(name)
    return old !== undefined && old !== value
  })
  const found = new Map<
    string,
    { path: readonly string[]; at: string | undefined; summaries: Set<string>; nodes: string[] }
  >()
  let count = 0
  for (const [name, value] of changed) {
    const changes = [...changesOf(before.get(name), value)]
    if (changes.length > 0) count++
    for (const { path, summary } of changes) {
      const at = locate?.(name, path)
      // Values that differ from node to node (addresses) make one line when they were written in one place.
      const key = [path.join('.'), at ?? (summary.startsWith('− ') ? 'gone' : summary)].join('\0')
      const entry = found.get(key) ?? { path, at, summaries: new Set(), nodes: [] }
      entry.summaries.add(summary)
      entry.nodes.push(name)
      found.set(key, entry)
    }
  }
  const changes = [...found.values()].map(({ path, at, summaries, nodes }) => ({
    nodes: fold(nodes),
    count: nodes.length,
    path: path.join('.'),
    summary: summarise([...summaries]),
    ...(at !== undefined && { at }),
  }))
  return { added: fold(added), removed: fold(removed), changes, nodes: added.length + removed.length + count }
}

function summarise(summaries: readonly string[]): string {
  const [first = ''] = summaries
  return summaries.length === 1 ? first : `${first}, and ${summaries.length - 1} more like it`
}

interface ValueChange {
  readonly path: readonly string[]
  readonly summary: string
}

function* changesOf(before: unknown, after: unknown, path: readonly string[] = []): Generator<ValueChange> {
  if (before === after) return
  if (isOpenMap(before) && isOpenMap(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (key === 'blob' && isContent(before) && isContent(after)) {
        const sameSource = before.source === after.source && before.blob !== after.blob
        if (sameSource) yield { path, summary: `content changed (files/${after.source})` }
      } else yield* changesOf(before[key], after[key], [...path, key])
    }
  } else if (isOpenMap(after) && before === undefined && !isContent(after)) {
    for (const key of Object.keys(after)) yield* changesOf(undefined, after[key], [...path, key])
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    yield { path, summary: describe(before, after) }
  }
}

const isOpenMap = (value: unknown): value is Plain => isMap(value) && !('$secret' in value)

function describe(before: unknown, after: unknown): string {
  if (isMap(before) && '$secret' in before && isMap(after) && '$secret' in after) return 'secret changed'
  if (Array.isArray(before) && Array.isArray(after)) {
    const [old, now] = [before.map(showValue), after.map(showValue)]
    const gone = old.filter(item => !now.includes(item)).map(item => `− ${item}`)
    const come = now.filter(item => !old.includes(item)).map(item => `+ ${item}`)
    if (gone.length + come.length > 0) return [...gone, ...come].join(' ')
  }
  if (before === undefined) return `+ ${showValue(after)}`
  if (after === undefined) return `− ${showValue(before)}`
  return `${showValue(before)} → ${showValue(after)}`
}
