import { DatabaseSync } from 'node:sqlite'
import { messageOf, MusterError } from '../lib/errors.ts'
import { applicationId, APPLICATION_ID, migrate, SCHEMA_VERSION, schemaVersion } from './migrations.ts'

const SQLITE_CORRUPT = 11
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26
export const SQLITE_BUSY = 5

/** SQLite's result code, without the details of the extended ones; undefined for any other error. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined
  return error.errcode & 0xff
}

/** The same error in the user's terms, if it is one that a user can do something about. */
export function explainSqlite(error: unknown, file: string): unknown {
  const code = sqliteCode(error)
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) return damaged(file, messageOf(error), error)
  if (code !== SQLITE_CANTOPEN) return error
  return new MusterError('INTERNAL', `${file}: ${messageOf(error)}`, {
    hint: 'is it a file that this user may read and write, in a directory likewise?',
    cause: error,
  })
}

/** Opens a state file, new or old: checked, brought to the present layout, and so set that a commit survives a power loss. */
export function openDatabase(file: string): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file)
    check(database, file)
    // The page size (8 values of 1 KB to a page, where 4 KB would hold 3) counts only while the file is still empty.
    database.exec(`
      PRAGMA page_size = 8192;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA cache_size = -65536;
      PRAGMA journal_size_limit = 67108864;
    `)
    migrate(database)
    return database
  } catch (error) {
    database?.close()
    throw explainSqlite(error, file)
  }
}

/** Everything that must be known before a byte is written. */
function check(database: DatabaseSync, file: string): void {
  const empty = database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  if (empty && applicationId(database) === 0) return
  if (applicationId(database) !== APPLICATION_ID) throw damaged(file, 'is a database of another program')
  const version = schemaVersion(database)
  if (version > SCHEMA_VERSION) {
    throw new MusterError('STATE_NEWER', `${file}: has layout ${version}, this muster knows up to ${SCHEMA_VERSION}`)
  }
  const problem = firstProblem(database, 'quick_check')
  if (problem !== undefined) throw damaged(file, problem)
}

/** What SQLite's own check finds first; undefined when all is well. `integrity_check` also compares indexes with tables. */
export function firstProblem(database: DatabaseSync, check: 'quick_check' | 'integrity_check'): string | undefined {
  const finding = database.prepare(`PRAGMA ${check}(1)`).get()?.[check]
  return finding === 'ok' ? undefined : String(finding)
}

const damaged = (file: string, problem: string, cause?: unknown): MusterError =>
  new MusterError('STATE_DAMAGED', `${file}: ${problem}`, { cause })
