import { DatabaseSync } from 'node:sqlite'
import { exists } from '../lib/dirs.ts'
import { OBSERVED, Observed } from './observed.ts'
import type { Entry } from './store.ts'

/** Entries of a server's state, read beside the server; none where there is no state. */
export async function peekEntries(file: string, prefix: string): Promise<Pick<Entry, 'key' | 'value'>[]> {
  if (!(await exists(file))) return []
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const rows = database
      .prepare('SELECT key, value FROM entry WHERE key >= ? AND key < ?')
      .all(prefix, `${prefix}\uFFFF`)
    return rows.map(row => ({ key: String(row['key']), value: String(row['value']) }))
  } finally {
    database.close()
  }
}

/** What a server's state says of the nodes. */
export const peekObserved = async (file: string): Promise<Observed[]> =>
  (await peekEntries(file, OBSERVED)).map(({ value }) => Observed.parse(JSON.parse(value)))
