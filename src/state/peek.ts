import { DatabaseSync } from 'node:sqlite'
import { exists } from '../lib/dirs.ts'
import { Observed, OBSERVED } from './observed.ts'

/** What a server's state says of the nodes, read beside the server; nothing where there is no state. */
export async function peekObserved(file: string): Promise<Observed[]> {
  if (!(await exists(file))) return []
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const rows = database
      .prepare('SELECT value FROM entry WHERE key >= ? AND key < ?')
      .all(OBSERVED, `${OBSERVED}\uFFFF`)
    return rows.map(row => Observed.parse(JSON.parse(String(row['value']))))
  } finally {
    database.close()
  }
}
