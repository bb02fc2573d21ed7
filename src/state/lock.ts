import { DatabaseSync } from 'node:sqlite'
import { MusterError } from '../lib/errors.ts'
import { explainSqlite, sqliteCode, SQLITE_BUSY } from './database.ts'
import { createPrivate } from './files.ts'

/** One process owns a state file at a time. */
export async function lockState(file: string): Promise<Disposable> {
  const lock = await tryLock(`${file}.lock`)
  if (lock === undefined) throw new MusterError('STATE_LOCKED', `${file}: is in use`)
  return lock
}

/**
 * The lock, or nothing when somebody has it. Its owner holds an exclusive transaction on an empty database, which is a
 * lock of the operating system's: it ends with the process, however that ends, so there is no stale lock to clear.
 *
 * SQLite's locks are POSIX locks, which a process loses when it closes *any* handle on the file: nothing else may open it.
 */
export async function tryLock(lockFile: string): Promise<Disposable | undefined> {
  await createPrivate(lockFile)
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(lockFile)
    // Nothing is ever written to it, so it needs no journal beside it either.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    if (sqliteCode(error) !== SQLITE_BUSY) throw explainSqlite(error, lockFile)
    return undefined
  }
  return { [Symbol.dispose]: () => database.close() }
}
