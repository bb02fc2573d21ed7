import { mkdir, mkdtempDisposable, open, readdir, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from './database.ts'
import { openSqliteStore } from './sqlite.ts'
import type { Store } from './store.ts'

let directory: Awaited<ReturnType<typeof mkdtempDisposable>>
let file: string
beforeEach(async () => {
  directory = await mkdtempDisposable(join(tmpdir(), 'muster-database-'))
  file = join(directory.path, 'state.db')
})
afterEach(() => directory.remove())

const withStore = async (work: (store: Store) => Promise<unknown>): Promise<void> => {
  await using store = await openSqliteStore(file)
  await work(store)
}
const fill = (store: Store): Promise<number> =>
  store.commit(
    Array.from({ length: 500 }, (_, index) => ({ key: `key/${index}`, value: 'x'.repeat(1000) })),
    [{ kind: 'test.filled', actor: 'test' }],
  )

describe('a state file', () => {
  it('and what lies beside it is for its owner only', async () => {
    await withStore(async store => {
      await fill(store)
      const names = await readdir(directory.path)
      expect(names).toEqual(['state.db', 'state.db-shm', 'state.db-wal', 'state.db.lock'])
      for (const name of names) expect((await stat(join(directory.path, name))).mode & 0o777).toBe(0o600)
    })
  })

  it('is set to survive a power loss', () => {
    using database = openDatabase(file)
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
    expect(database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 }) // FULL
  })

  it('may be empty: that is how one begins', async () => {
    await writeFile(file, '')
    await withStore(async store => expect(await store.revision()).toBe(0))
  })
})

describe('opening a state file', () => {
  it.each([
    [
      'is no database',
      () => writeFile(file, 'n[001-128]: { groups: [compute] }\n'.repeat(500)),
      /state\.db: file is not a database/,
    ],
    [
      'is a database of another program',
      () => execute('CREATE TABLE theirs (x)'),
      /state\.db: is a database of another program/,
    ],
    ['was cut short', () => withStore(fill).then(() => truncate(file, 100_000)), /state\.db: /],
    ['was overwritten in the middle', () => withStore(fill).then(overwriteMiddle), /state\.db: /],
  ])('that %s fails with STATE_DAMAGED', async (_, damage, message) => {
    await damage()
    const opening = openSqliteStore(file)
    await expect(opening).rejects.toThrow(message)
    await expect(opening).rejects.toMatchObject({ code: 'STATE_DAMAGED' })
  })

  it('that a newer muster wrote fails with STATE_NEWER, and leaves it as it is', async () => {
    await withStore(fill)
    await execute('PRAGMA user_version = 99; PRAGMA journal_mode = DELETE')
    const { mtimeMs } = await stat(file)
    await expect(openSqliteStore(file)).rejects.toMatchObject({
      code: 'STATE_NEWER',
      message: `${file}: has layout 99, this muster knows up to 2`,
    })
    expect((await stat(file)).mtimeMs).toBe(mtimeMs)
  })

  it('that is a directory names it', async () => {
    await mkdir(file)
    await expect(openSqliteStore(file)).rejects.toThrow(`${file}: unable to open database file`)
  })

  it('in use fails with STATE_LOCKED, by whatever name, until it is closed', async () => {
    const alias = join(directory.path, 'alias.db')
    await symlink(file, alias)
    await withStore(async () => {
      await expect(openSqliteStore(file)).rejects.toMatchObject({ code: 'STATE_LOCKED', message: `${file}: is in use` })
      await expect(openSqliteStore(alias)).rejects.toMatchObject({ code: 'STATE_LOCKED' })
    })
    await withStore(fill)
  })

  it('that fails lets go of it', async () => {
    await writeFile(file, 'no database'.repeat(100))
    await expect(openSqliteStore(file)).rejects.toMatchObject({ code: 'STATE_DAMAGED' })
    await writeFile(file, '')
    await withStore(fill)
  })
})

async function execute(sql: string): Promise<void> {
  using database = new DatabaseSync(file)
  database.exec(sql)
}

/** Half of it, from a quarter on. */
async function overwriteMiddle(): Promise<void> {
  const { size } = await stat(file)
  await using handle = await open(file, 'r+')
  await handle.write(Buffer.alloc(Math.floor(size / 2), 0xa5), 0, null, Math.floor(size / 4))
}
