import { createHash } from 'node:crypto'
import type { Pace } from '../pack/pace.ts'
import { cutStably } from '../pack/stable-cut.ts'
import type { FileEntry, FileTree } from '../tree/entry.ts'
import { BLOCK_SIZE } from './format.ts'

/**
 * What the data area holds, in order, as told by the tree alone: every content once, large files in blocks of their own,
 * small ones together in fragment blocks. (Ends of large files are blocks too, as mksquashfs has it by default.)
 */
export type DataStep = BlocksStep | FragmentStep

export interface BlocksStep {
  readonly kind: 'blocks'
  readonly file: FileEntry
}

export interface FragmentStep {
  readonly kind: 'fragment'
  readonly files: readonly FileEntry[]
  /** The same for fragment blocks with the same contents. */
  readonly key: string
}

export async function planData(tree: FileTree, pace: Pace): Promise<DataStep[]> {
  const contents = new Map<string, FileEntry>()
  for (const entry of tree.entries) {
    if (pace.due()) await pace.rest()
    if (entry.type === 'file' && entry.size > 0 && !contents.has(entry.sha256)) contents.set(entry.sha256, entry)
  }
  const files = [...contents.values()]
  const fragments = cutStably(files.filter(isSmall), FRAGMENT)
  const fragmentStartingWith = new Map(fragments.map(group => [group[0], group]))
  const steps: DataStep[] = []
  for (const file of files) {
    if (pace.due()) await pace.rest()
    const group = fragmentStartingWith.get(file)
    if (group !== undefined) steps.push({ kind: 'fragment', files: group, key: keyOf(group) })
    else if (!isSmall(file)) steps.push({ kind: 'blocks', file })
  }
  return steps
}

const isSmall = (file: FileEntry): boolean => file.size < BLOCK_SIZE

/** On a Debian tree, the change of one file changes 1.1 fragment blocks on average; fuller ones would save next to nothing. */
const FRAGMENT = { min: (BLOCK_SIZE * 5) / 8, max: BLOCK_SIZE }

const keyOf = (files: readonly FileEntry[]): string =>
  createHash('sha256')
    .update(files.map(file => `${file.sha256} ${file.size}\n`).join(''))
    .digest('hex')
