import { z } from 'zod'
import type { Change, NewEvent, Store } from './store.ts'

/**
 * What a node is seen to be. Each field has one source of truth, and is absent while that source cannot tell: absent
 * means unknown, never "off" or "fine".
 */
const field = <Value extends z.ZodType>(value: Value) =>
  z.strictObject({ value, since: z.iso.datetime(), reason: z.string().max(1000).optional() })

export const Observed = z
  .strictObject({
    power: field(z.enum(['off', 'on'])),
    boot: field(z.enum(['dhcp', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready', 'failed'])),
    image: field(z.string().regex(/^sha256:[0-9a-f]{64}$/)),
    config: field(z.string().max(200)),
    health: field(z.enum(['ok', 'degraded', 'bad'])),
    sched: field(z.enum(['idle', 'alloc', 'mixed', 'drain', 'drained', 'down', 'none'])),
    hold: field(z.enum(['free', 'job', 'admin'])),
  })
  .partial()
export type Observed = z.infer<typeof Observed>
export type ObservedField = keyof Observed

/** New values; null says that the field is not known any more. */
export type Report = {
  readonly [Field in ObservedField]?: { value: NonNullable<Observed[Field]>['value']; reason?: string } | null
}

/** Where they are kept: observed/NODE. */
export const OBSERVED = 'observed/'
const RETRIES = 10

export async function observedOf(store: Store, node: string): Promise<Observed> {
  const entry = await store.get(OBSERVED + node)
  return entry === undefined ? {} : Observed.parse(JSON.parse(entry.value))
}

export async function allObserved(store: Store): Promise<Map<string, Observed>> {
  const entries = await store.list(OBSERVED)
  return new Map(entries.map(entry => [entry.key.slice(OBSERVED.length), Observed.parse(JSON.parse(entry.value))]))
}

/**
 * Records what changed, with an event; a report that says nothing new writes nothing. Two sources may report on one node
 * at once: neither overwrites what the other said.
 */
export async function report(
  store: Store,
  node: string,
  news: Report,
  event: Omit<NewEvent, 'kind' | 'nodes'>,
  now: Date,
): Promise<Observed> {
  for (let attempt = 1; ; attempt++) {
    const entry = await store.get(OBSERVED + node)
    const before = entry === undefined ? {} : Observed.parse(JSON.parse(entry.value))
    const { after, changed } = mergeReport(before, news, now.toISOString())
    if (changed.length === 0) return before
    const change: Change = { key: OBSERVED + node, value: JSON.stringify(after), ifRevision: entry?.revision ?? 0 }
    try {
      await store.commit(
        [change],
        [
          {
            ...event,
            kind: 'node.observed',
            nodes: node,
            data: Object.fromEntries(changed.map(name => [name, after[name]?.value ?? null])),
          },
        ],
      )
      return after
    } catch (error) {
      if (attempt === RETRIES) throw error
    }
  }
}

/** What a report makes of what was known, and which fields that changes. */
export function mergeReport(
  before: Observed,
  news: Report,
  since: string,
): { after: Observed; changed: ObservedField[] } {
  const after: Record<string, unknown> = { ...before }
  const changed: ObservedField[] = []
  for (const name of Object.keys(Observed.shape) as ObservedField[]) {
    const next = news[name]
    if (next === undefined) continue
    const old = before[name]
    if (next === null ? old === undefined : old?.value === next.value && old?.reason === next.reason) continue
    changed.push(name)
    if (next === null) delete after[name]
    else after[name] = { ...next, since: old?.value === next.value ? old.since : since }
  }
  return { after: Observed.parse(after), changed }
}
