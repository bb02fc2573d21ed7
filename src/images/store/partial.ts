import { readdir, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isErrno } from '../../state/files.ts'
import { NOBODY, isAlive, ownedName } from './owner.ts'

/** Downloads that did not come to their end: `OWNER.RANDOM.SHA256`. Whoever renames one first may go on with it. */
const FORM = /^([\d-]+)\.[0-9a-f]+\.([0-9a-f]{64})$/

/** The path of a file that is ours alone. It exists if somebody left one. */
export async function claimPartial(directory: string, sha256: string): Promise<string> {
  const mine = join(directory, `${ownedName()}.${sha256}`)
  for (const name of await readdir(directory)) {
    const [, owner = '', of] = FORM.exec(name) ?? []
    if (of === sha256 && !isAlive(owner) && (await tryRename(join(directory, name), mine))) break
  }
  return mine
}

/** Also where nothing was written yet. */
export async function givePartialUp(file: string): Promise<void> {
  const [, , sha256 = ''] = FORM.exec(basename(file)) ?? []
  await tryRename(file, join(dirname(file), `${ownedName(NOBODY)}.${sha256}`))
}

async function tryRename(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false
    throw error
  }
}
