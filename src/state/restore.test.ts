import { mkdtempDisposable, open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startCommitter } from './fixtures/start-committer.ts'
import { restoreSqlite } from './restore.ts'
import { openSqliteStore } from './sqlite.ts'
import type { Store } from './store.ts'

let directory: Awaited<ReturnType<typeof mkdtempDisposable>>
let file: string
let backup: string
beforeEach(async () => {
  directory = await mkdtempDisposable(join(tmpdir(), 'muster-restore-'))
  file = join(directory.path, 'state.db')
  backup = join(directory.path, 'backup')
})
afterEach(() => directory.remove())

const put = (store: Store, key: string): Promise<number> =>
  store.commit([{ key, value: '1' }], [{ kind: 'test.put', actor: 'test', data: key }])

/** What is in the state: keys, and how many events. */
async function contents(path = file): Promise<string[]> {
  await using store = await openSqliteStore(path)
  return [...(await store.list('')).map(entry => entry.key), String(await store.revision())]
}

/** A state with `kept`, a backup of it, and `later` in the state only. */
async function backedUp(): Promise<void> {
  await using store = await openSqliteStore(file)
  await put(store, 'kept')
  await store.backup(backup)
  await put(store, 'later')
}

describe('a backup', () => {
  it('holds what was committed before it, and is whole while others go on writing', async () => {
    await using store = await openSqliteStore(file)
    const value = 'x'.repeat(1000)
    const write = (number: number): Promise<number> =>
      store.commit(
        Array.from({ length: 100 }, (_, index) => ({ key: `key/${index}`, value: `${number} ${value}` })),
        [{ kind: 'test.written', actor: 'test' }],
      )
    for (let number = 1; number <= 20; number++) await write(number)
    const finished = new AbortController()
    const backingUp = store.backup(backup).finally(() => finished.abort())
    for (let number = 21; !finished.signal.aborted; number++) {
      await write(number)
      await new Promise(setImmediate)
    }
    await backingUp

    const copy = join(directory.path, 'copy.db')
    await restoreSqlite(backup, copy)
    await using restored = await openSqliteStore(copy)
    const revision = await restored.revision()
    expect(revision).toBeGreaterThanOrEqual(20)
    const entries = await restored.list('')
    expect(entries).toHaveLength(100)
    for (const entry of entries) expect(entry).toMatchObject({ revision, value: `${revision} ${value}` })
  })

  it.each(['state.db', 'state.db-wal', 'state.db.lock'])('does not go over the state itself (%s)', async name => {
    await using store = await openSqliteStore(file)
    await expect(store.backup(join(directory.path, '.', name))).rejects.toMatchObject({ code: 'USAGE' })
    expect(await put(store, 'still there')).toBe(1)
  })
})

describe('restoring', () => {
  it('brings back what the backup holds, and keeps what was there beside it', async () => {
    await backedUp()
    await restoreSqlite(backup, file)
    expect(await readdir(directory.path)).toEqual(['backup', 'state.db', 'state.db.before-restore', 'state.db.lock'])
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await contents()).toEqual(['kept', '1'])
    expect(await contents(`${file}.before-restore`)).toEqual(['kept', 'later', '2'])
  })

  it('can be undone by restoring what was kept', async () => {
    await backedUp()
    await restoreSqlite(backup, file)
    await restoreSqlite(`${file}.before-restore`, file)
    expect(await contents()).toEqual(['kept', 'later', '2'])
    expect(await contents(`${file}.before-restore`)).toEqual(['kept', '1'])
  })

  it('needs no state to be there', async () => {
    await backedUp()
    const fresh = join(directory.path, 'fresh.db')
    await restoreSqlite(backup, fresh)
    expect(await contents(fresh)).toEqual(['kept', '1'])
  })

  it('goes over a state that is damaged', async () => {
    await backedUp()
    await writeFile(file, 'damaged '.repeat(5000))
    await writeFile(`${file}-wal`, 'its log')
    await restoreSqlite(backup, file)
    expect(await contents()).toEqual(['kept', '1'])
    expect(await readFile(`${file}.before-restore`, 'utf8')).toMatch(/^damaged /)
  })

  it('goes over the state of a server that was killed, of which the log is not lost', async () => {
    await backedUp()
    const killed = join(directory.path, 'killed.db')
    const committer = await startCommitter(killed, 3)
    await expect(restoreSqlite(backup, killed)).rejects.toMatchObject({ code: 'STATE_LOCKED' })
    const acknowledged = await committer.kill()
    expect((await stat(`${killed}-wal`)).size).toBeGreaterThan(0)
    await restoreSqlite(backup, killed)
    expect(await contents(killed)).toEqual(['kept', '1'])
    await using before = await openSqliteStore(`${killed}.before-restore`)
    expect(Number((await before.get('count'))?.value)).toBeGreaterThanOrEqual(acknowledged)
  })

  it('is refused while a server runs, and leaves its state alone', async () => {
    await backedUp()
    await using store = await openSqliteStore(file)
    await expect(restoreSqlite(backup, file)).rejects.toMatchObject({ code: 'STATE_LOCKED' })
    expect(await put(store, 'more')).toBe(3)
  })

  it.each<[string, string | RegExp, () => Promise<unknown>]>([
    ['does not exist', 'there is no such file', async () => (backup = join(directory.path, 'missing'))],
    ['is the state itself', 'is the state itself', async () => (backup = file)],
    ['has a log beside it', 'has a write-ahead log beside it', () => writeFile(`${backup}-wal`, 'log')],
    ['is no database', 'file is not a database', () => writeFile(backup, 'text '.repeat(5000))],
    ['is empty', 'is not a backup of muster', () => writeFile(backup, '')],
    ['is of another program', 'is not a backup of muster', () => execute('PRAGMA application_id = 7')],
    ['is of a newer muster', 'has layout 99, this muster knows 1 to 2', () => execute('PRAGMA user_version = 99')],
    ['is damaged', /backup: /, overwriteEnd],
  ])('a file that %s fails with BACKUP_INVALID and changes nothing', async (_, message, spoil) => {
    await backedUp()
    await spoil()
    const names = await readdir(directory.path)
    const restoring = restoreSqlite(backup, file)
    await expect(restoring).rejects.toThrow(message)
    await expect(restoring).rejects.toMatchObject({ code: 'BACKUP_INVALID' })
    expect(await readdir(directory.path)).toEqual(names)
    expect(await contents()).toEqual(['kept', 'later', '2'])
  })
})

/** On the backup. */
async function execute(sql: string): Promise<void> {
  using database = new DatabaseSync(backup)
  database.exec(sql)
}

/** The last page: an index or a table, but not the header. */
async function overwriteEnd(): Promise<void> {
  const { size } = await stat(backup)
  await using handle = await open(backup, 'r+')
  await handle.write(Buffer.alloc(4096, 0xa5), 0, null, size - 4096)
}
