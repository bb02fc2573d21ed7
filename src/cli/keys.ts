import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import type { Io } from './io.ts'

/** The text of the age key file that was named, if any was. */
export async function readKeys(io: Io, given: string | undefined): Promise<string | undefined> {
  const file = given ?? io.env['MUSTER_AGE_KEY_FILE']
  if (file === undefined) return undefined
  return readFile(resolve(io.cwd, file), 'utf8').catch((error: unknown) => {
    throw new MusterError('SECRET_KEY_MISSING', `the key file ${file} cannot be read`, { cause: error })
  })
}
