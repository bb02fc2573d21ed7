import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { allObserved, observedOf, report } from './observed.ts'
import { openSqliteStore } from './sqlite.ts'
import type { Store } from './store.ts'

let dir: string
let store: Store
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-observed-'))
  store = await openSqliteStore(join(dir, 'state.db'))
})
afterEach(async () => {
  await store.close()
  await rm(dir, { recursive: true })
})

const at = (seconds: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds))
const bmc = { actor: 'bmc' }
const agent = { actor: 'agent' }

test('what was never reported is unknown', async () => {
  expect(await observedOf(store, 'n001')).toEqual({})
})

test('a change is stored with its time and an event', async () => {
  await report(store, 'n001', { power: { value: 'on' } }, bmc, at(1))
  expect(await observedOf(store, 'n001')).toEqual({ power: { value: 'on', since: '2026-01-01T00:00:01.000Z' } })
  expect(await store.events()).toMatchObject([
    { kind: 'node.observed', nodes: 'n001', actor: 'bmc', data: { power: 'on' } },
  ])
})

test('a report that says nothing new writes nothing', async () => {
  await report(store, 'n001', { power: { value: 'on' } }, bmc, at(1))
  await report(store, 'n001', { power: { value: 'on' } }, bmc, at(2))
  expect(await store.revision()).toBe(1)
})

test('a new reason keeps the time since when the value holds', async () => {
  await report(store, 'n001', { health: { value: 'bad', reason: 'disk' } }, agent, at(1))
  await report(store, 'n001', { health: { value: 'bad', reason: 'disk and memory' } }, agent, at(5))
  expect(await observedOf(store, 'n001')).toEqual({
    health: { value: 'bad', reason: 'disk and memory', since: '2026-01-01T00:00:01.000Z' },
  })
})

test('null makes a field unknown again', async () => {
  await report(store, 'n001', { power: { value: 'on' }, boot: { value: 'ready' } }, bmc, at(1))
  await report(store, 'n001', { boot: null }, agent, at(2))
  expect(Object.keys(await observedOf(store, 'n001'))).toEqual(['power'])
})

test('reports at the same time do not overwrite each other', async () => {
  await Promise.all([
    report(store, 'n001', { power: { value: 'on' } }, bmc, at(1)),
    report(store, 'n001', { boot: { value: 'kernel' } }, agent, at(1)),
    report(store, 'n001', { sched: { value: 'idle' } }, { actor: 'slurm' }, at(1)),
    report(store, 'n002', { power: { value: 'off' } }, bmc, at(1)),
  ])
  const all = await allObserved(store)
  expect(Object.keys(all.get('n001') ?? {}).sort()).toEqual(['boot', 'power', 'sched'])
  expect(all.get('n002')?.power?.value).toBe('off')
})

test('a value that is none of those allowed is refused', async () => {
  const wrong = { power: { value: 'sideways' as 'on' } }
  await expect(report(store, 'n001', wrong, bmc, at(1))).rejects.toThrow('Invalid option')
  expect(await store.revision()).toBe(0)
})
