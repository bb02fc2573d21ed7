import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import type { Change, Store } from '../state/store.ts'

/** One application of the site: which commit became desired state, when, and by whom. */
export const Generation = z.strictObject({
  number: z.int(),
  commit: z.string(),
  /** The git tree that was applied; it differs from the commit's when changes were not committed. */
  tree: z.string(),
  dirty: z.boolean(),
  author: z.string(),
  subject: z.string(),
  appliedBy: z.string(),
  appliedAt: z.string(),
  /** How many nodes it changed. */
  nodes: z.int(),
  /** The groups it has, those without nodes included. */
  groups: z.array(z.string()),
})
export type Generation = z.infer<typeof Generation>

const CURRENT = 'generation'
const keyOf = (number: number): string => `generations/${String(number).padStart(10, '0')}`

export async function currentGeneration(
  store: Store,
): Promise<{ readonly generation: Generation | undefined; readonly revision: number }> {
  const entry = await store.get(CURRENT)
  return entry === undefined
    ? { generation: undefined, revision: 0 }
    : { generation: Generation.parse(JSON.parse(entry.value)), revision: entry.revision }
}

/** Newest first. */
export async function listGenerations(store: Store): Promise<Generation[]> {
  const entries = await store.list('generations/')
  return entries.map(entry => Generation.parse(JSON.parse(entry.value))).reverse()
}

export async function generationNumber(store: Store, number: number): Promise<Generation> {
  const entry = await store.get(keyOf(number))
  if (entry === undefined) throw new MusterError('GENERATION_UNKNOWN', `there is no generation ${number}`)
  return Generation.parse(JSON.parse(entry.value))
}

/** Makes it the current one, provided nobody else made another current meanwhile. */
export function generationChanges(generation: Generation, currentRevision: number): Change[] {
  const value = JSON.stringify(generation)
  return [
    { key: CURRENT, value, ifRevision: currentRevision },
    { key: keyOf(generation.number), value, ifRevision: 0 },
  ]
}
