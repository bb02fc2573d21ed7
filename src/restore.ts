import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { confirm } from './cli/ask.ts'
import type { Call } from './cli/define.ts'
import { makeDirectory } from './lib/dirs.ts'
import { restoreSqlite } from './state/restore.ts'

/** Works on the data directory itself: there is no server to ask while its state is being replaced. */
export async function restore({
  io,
  out,
  args: [file = ''],
  options,
}: Call<{ data: string; yes?: boolean }>): Promise<void> {
  const data = resolve(io.cwd, options.data)
  await confirm(io, `replace the state in ${options.data} by ${file}?`, options.yes)
  await makeDirectory(data, 0o700)
  const state = join(data, 'state.db')
  const hadState = await access(state).then(
    () => true,
    () => false,
  )
  await restoreSqlite(resolve(io.cwd, file), state)
  const kept = hadState ? '; what was there is kept as state.db.before-restore' : ''
  await out.result({ restored: file, data }, () => [
    `${file} restored into ${options.data}${kept}`,
    'next: start the server',
  ])
}
