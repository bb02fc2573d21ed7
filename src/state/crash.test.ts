import { copyFile, mkdtempDisposable, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commitNumber } from './fixtures/commit-number.ts'
import { startCommitter } from './fixtures/start-committer.ts'
import { openSqliteStore } from './sqlite.ts'
import type { Store } from './store.ts'

const ROUNDS = 15
/** Now and then enough commits for SQLite to bring its log into the database: that must survive a kill, too. */
const MOST_COMMITS = 250

const directory = () => mkdtempDisposable(join(tmpdir(), 'muster-crash-'))
const countOf = async (store: Store): Promise<number> => Number((await store.get('count'))?.value ?? 0)

/** Checks that the state is what so many commits make of it: all of each, and nothing of any other. */
async function expectExactly(store: Store, commits: number): Promise<void> {
  const entries = new Map<string, { key: string; value: string; revision: number }>()
  const data: unknown[] = []
  for (let number = 1; number <= commits; number++) {
    const { changes, events } = commitNumber(number)
    data.push(...events.map(event => event.data))
    for (const { key, value } of changes) {
      if (value === null) entries.delete(key)
      else entries.set(key, { key, value, revision: data.length })
    }
  }
  expect(await store.list('')).toEqual([...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1)))
  expect((await store.events()).map(event => event.data)).toEqual(data)
  expect(await store.revision()).toBe(data.length)
}

describe('a process that is killed while it commits', () => {
  it(`has lost nothing it acknowledged and left nothing half done, ${ROUNDS} times in a row`, async () => {
    await using temporary = await directory()
    const file = join(temporary.path, 'state.db')
    for (let round = 0; round < ROUNDS; round++) {
      const committer = await startCommitter(file, 1 + Math.floor(Math.random() ** 2 * MOST_COMMITS))
      const acknowledged = await committer.kill()
      await using store = await openSqliteStore(file)
      // The last commit may have been done without a chance to say so.
      const found = await countOf(store)
      expect([acknowledged, acknowledged + 1]).toContain(found)
      await expectExactly(store, found)
    }
  })

  it('has let go of the state', async () => {
    await using temporary = await directory()
    const file = join(temporary.path, 'state.db')
    const committer = await startCommitter(file, 1)
    await expect(openSqliteStore(file)).rejects.toMatchObject({ code: 'STATE_LOCKED' })
    await committer.kill()
    await using store = await openSqliteStore(file)
    expect(await countOf(store)).toBeGreaterThan(0)
  })
})

describe('a power loss while a commit is being written', () => {
  it('leaves the commit before whole, and nothing of the one under way, wherever the log was cut', async () => {
    await using temporary = await directory()
    const file = join(temporary.path, 'state.db')
    await using store = await openSqliteStore(file)
    const commit = async (number: number): Promise<number> => {
      const { changes, events } = commitNumber(number)
      await store.commit(changes, events)
      return (await stat(`${file}-wal`)).size
    }
    await commit(1)
    const before = await commit(2)
    const after = await commit(3)
    expect(after).toBeGreaterThan(before)

    const step = Math.ceil((after - before) / 20)
    const cuts = Array.from({ length: 20 }, (_, index) => Math.min(before + index * step, after - 1))
    for (const [index, cut] of [...cuts, after].entries()) {
      const copy = join(temporary.path, `${index}.db`)
      await copyFile(file, copy)
      await copyFile(`${file}-wal`, `${copy}-wal`)
      await truncate(`${copy}-wal`, cut)
      await using survivor = await openSqliteStore(copy)
      await expectExactly(survivor, cut === after ? 3 : 2)
    }
  })
})
