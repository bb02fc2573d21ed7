import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeStore } from './contract.ts'
import { openSqliteStore } from './sqlite.ts'

describeStore('SQLite', async () => {
  const directory = await mkdtempDisposable(join(tmpdir(), 'muster-state-'))
  return {
    open: options => openSqliteStore(join(directory.path, 'state.db'), options),
    [Symbol.asyncDispose]: () => directory.remove(),
  }
})
