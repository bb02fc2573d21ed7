import { access, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Makes a directory and those above it. Node's own recursive mkdir never ends where none can be made, as below /proc. */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  const error = await attempt(path, mode)
  if (error === undefined) return
  if (error.code !== 'ENOENT' || dirname(path) === path) throw error
  await makeDirectory(dirname(path))
  const again = await attempt(path, mode)
  if (again !== undefined) throw again
}

/** Why it is not there now; that somebody else made it, even just now, is no reason. */
const attempt = (path: string, mode: number): Promise<NodeJS.ErrnoException | undefined> =>
  mkdir(path, { mode }).then(
    () => undefined,
    (error: unknown) => ((error as NodeJS.ErrnoException).code === 'EEXIST' ? undefined : (error as Error)),
  )

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
