import type { DatabaseSync } from 'node:sqlite'

/** All of the work or nothing of it. It must not await: the connection has one transaction at a time. */
export function transaction<Result>(database: DatabaseSync, work: () => Result): Result {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // Some failures (disk full, for one) have made SQLite roll back already.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
