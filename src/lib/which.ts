import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

/** Whether a command of that name would be found, as a shell looks for it; `more` are directories to look in as well. */
export async function isInstalled(command: string, more: readonly string[] = []): Promise<boolean> {
  const dirs = [...(process.env['PATH'] ?? '').split(delimiter), ...more]
  const found = dirs.map(dir => access(join(dir, command), constants.X_OK).then(() => true))
  return Promise.any(found).catch(() => false)
}
