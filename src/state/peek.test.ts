import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { report } from './observed.ts'
import { peekObserved } from './peek.ts'
import { openSqliteStore } from './sqlite.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-peek-'))
})
afterEach(() => rm(dir, { recursive: true }))

const NOW = new Date(Date.UTC(2026, 0, 1))
const since = NOW.toISOString()
const DIGEST = `sha256:${'a'.repeat(64)}`

test('what is known of the nodes, read beside the server that writes it', async () => {
  const file = join(dir, 'state.db')
  await using store = await openSqliteStore(file)
  await report(store, 'n002', { image: { value: DIGEST } }, { actor: 'agent' }, NOW)
  await report(store, 'n001', { power: { value: 'on' } }, { actor: 'bmc' }, NOW)
  const others = ['observe', 'observed', 'observee/x', 'tokens/x'].map(key => ({ key, value: '{}' }))
  await store.commit(others, [{ kind: 'test', actor: 'test' }])
  expect(await peekObserved(file)).toEqual([{ power: { value: 'on', since } }, { image: { value: DIGEST, since } }])
  // And the server goes on.
  await report(store, 'n003', { power: { value: 'off' } }, { actor: 'bmc' }, NOW)
  expect((await peekObserved(file)).length).toBe(3)
})

test('when the server is stopped', async () => {
  const file = join(dir, 'state.db')
  const store = await openSqliteStore(file)
  await report(store, 'n001', { image: { value: DIGEST } }, { actor: 'agent' }, NOW)
  await store.close()
  expect(await peekObserved(file)).toEqual([{ image: { value: DIGEST, since } }])
})

test('where there is no state there is nothing, and none is made', async () => {
  expect(await peekObserved(join(dir, 'state.db'))).toEqual([])
  expect(await readdir(dir)).toEqual([])
})

test('a file that is no state is not taken for one without nodes', async () => {
  await writeFile(join(dir, 'state.db'), 'not a database, but long enough to be looked at\n'.repeat(50))
  await expect(peekObserved(join(dir, 'state.db'))).rejects.toThrow(/not a database/)
})
