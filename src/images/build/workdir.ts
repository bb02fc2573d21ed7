import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectory } from '../../lib/dirs.ts'
import { isAlive, ownedName } from '../store/owner.ts'

/**
 * A directory for one build. Nothing is ever mounted in it for others to see, so what a killed build leaves behind is
 * files: the next build removes them.
 */
export async function openWorkDir(parent: string): Promise<AsyncDisposable & { readonly path: string }> {
  await makeDirectory(parent, 0o700)
  for (const name of await readdir(parent))
    if (!isAlive(name.split('.')[0] ?? '')) await rm(join(parent, name), { recursive: true, force: true })
  const path = join(parent, ownedName())
  await mkdir(path, { mode: 0o700 })
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
