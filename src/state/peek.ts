import { access } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { Observed, OBSERVED } from './observed.ts'

/** What a server's state says of the nodes, read beside the server; nothing where there is no state. */
export async function peekObserved(file: string): Promise<Observed[]> {
  const isThere = await access(file).then(
    () => true,
    () => false,
  )
  if (!isThere) return []
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
