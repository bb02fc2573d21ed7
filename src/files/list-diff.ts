import { type ListLine, parseList } from './list.ts'

/** How what a node has differs from what it is to have: something is missing, is too much, or is another. */
export interface FileDifference {
  readonly path: string
  readonly change: 'missing' | 'unwanted' | 'different'
  /** What is different: content, mode, owner … */
  readonly what: readonly string[]
}

/** In order of path; undefined if one of the two is no list. An empty text stands for no files at all. */
export function diffLists(wanted: string, had: string): FileDifference[] | undefined {
  const [after, before] = [linesOf(wanted), linesOf(had)]
  if (after === undefined || before === undefined) return undefined
  const differences: FileDifference[] = []
  for (const [path, line] of after) {
    const old = before.get(path)
    const what = old === undefined ? [] : whatDiffers(old, line)
    if (old === undefined || what.length > 0)
      differences.push({ path, change: old === undefined ? 'missing' : 'different', what })
  }
  for (const path of before.keys()) if (!after.has(path)) differences.push({ path, change: 'unwanted', what: [] })
  return differences.sort((a, b) => (a.path < b.path ? -1 : 1))
}

function linesOf(text: string): Map<string, ListLine> | undefined {
  const lines = text === '' ? [] : parseList(text)
  return lines && new Map(lines.map(line => [line.path, line]))
}

const WORDS = {
  sha256: 'content',
  mode: 'mode',
  owner: 'owner',
  group: 'group',
  target: 'target',
  when: 'when',
  run: 'then',
} as const

/** Of a file that became a link, nothing else is worth a word. */
function whatDiffers(before: ListLine, after: ListLine): string[] {
  if (before.kind !== after.kind) return ['kind']
  return Object.entries(WORDS).flatMap(([key, word]) =>
    before[key as keyof typeof WORDS] === after[key as keyof typeof WORDS] ? [] : [word],
  )
}
