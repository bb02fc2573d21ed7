import { open, readFile, realpath, rm, stat } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import type { YamlEdit } from '../lib/yaml/edit.ts'
import type { Site } from '../site/site.ts'
import type { Workspace } from '../site/workspace.ts'
import type { Io } from './io.ts'

/** The text of the age key file that was named, if any was. */
export async function readKeys(io: Io, given: string | undefined): Promise<string | undefined> {
  const file = given ?? io.env['MUSTER_AGE_KEY_FILE']
  if (file === undefined) return undefined
  return readFile(resolve(io.cwd, file), 'utf8').catch((error: unknown) => {
    throw new MusterError('SECRET_KEY_MISSING', `the key file ${file} cannot be read`, { cause: error })
  })
}

/**
 * Writes a private key into a new file for its owner alone, and names its public half in the site. If that fails, there is
 * no file. Never inside the repository, where it would be committed, and never over another one.
 */
export async function writeKeyFile(
  io: Io,
  given: string,
  content: string,
  workspace: Workspace,
  name: { readonly edit: (site: Site) => Map<string, YamlEdit[]>; readonly message: string },
): Promise<string> {
  const file = resolve(io.cwd, given)
  const parent = await realpath(dirname(file)).catch(() => undefined)
  if (parent === undefined) throw new MusterError('USAGE', `there is no directory ${dirname(file)}`)
  if (`${parent}${sep}`.startsWith(`${workspace.repo.dir}${sep}`))
    throw new MusterError('USAGE', `${given} is inside the repository: keep keys out of git`, {
      hint: 'choose another place, such as /etc/muster',
    })
  const handle = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw new MusterError('USAGE', `${given} exists already or cannot be written`, {
      cause: error,
      hint: 'choose another file; keys are never overwritten',
    })
  })
  try {
    await handle.writeFile(content)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await workspace.change(name.edit, name.message).catch(async (error: unknown) => {
    await rm(file, { force: true })
    throw error
  })
  return file
}

/** A private key that nobody else can read. */
export async function readPrivateFile(io: Io, given: string): Promise<string> {
  const file = resolve(io.cwd, given)
  const found = await stat(file).catch((error: unknown) => {
    throw new MusterError('KEY_INVALID', `the key file ${given} cannot be read`, { cause: error })
  })
  if ((found.mode & 0o077) !== 0)
    throw new MusterError('KEY_INVALID', `others may read the key file ${given}`, { hint: `chmod 600 ${given}` })
  return readFile(file, 'utf8')
}
