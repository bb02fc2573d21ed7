import { backup, DatabaseSync } from 'node:sqlite'
import { replaceFile } from './files.ts'

/** Enough to be quick, little enough for the writer to get its turn at the disk. */
const PAGES_PER_STEP = 1024

/**
 * Copies a database that is in use. A connection of its own holds one view of it all the while: what is committed
 * meanwhile neither gets into the copy nor makes SQLite start over. The copying happens off the main thread.
 */
export async function backupDatabase(source: string, target: string): Promise<void> {
  await replaceFile(target, async temporary => {
    const reader = new DatabaseSync(source, { readOnly: true })
    try {
      reader.exec('BEGIN; SELECT 1 FROM sqlite_schema') // the view begins with the first read
      await backup(reader, temporary, { rate: PAGES_PER_STEP })
    } finally {
      reader.close()
    }
    makeSelfContained(temporary)
  })
}

/** Brings what the write-ahead log holds into the database itself, and does without a log from then on. */
export function makeSelfContained(file: string): void {
  const database = new DatabaseSync(file)
  try {
    database.exec('PRAGMA journal_mode = DELETE')
  } finally {
    database.close()
  }
}
