import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, mkdir, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { isErrno, sync } from '../../state/files.ts'

/** Bytes that are known by their digest. */
export interface Blob {
  /** 64 digits in hex. */
  readonly sha256: string
  readonly size: number
}

const CHUNK = 2 ** 20

export async function hashFile(file: string): Promise<Blob> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of createReadStream(file, { highWaterMark: CHUNK })) {
    hash.update(chunk as Buffer)
    size += (chunk as Buffer).length
  }
  return { sha256: hash.digest('hex'), size }
}

/** Its length, or nothing where there is no such file. */
export async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await lstat(file)).size
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    throw error
  }
}

/** On disk, with its mode, and with the time of now: whatever was built long ago is new to the store. */
export async function seal(file: string, mode: number): Promise<void> {
  await using handle = await open(file, 'r')
  const now = new Date()
  await handle.chmod(mode)
  await handle.utimes(now, now)
  await handle.sync()
}

/** Gives a sealed file its name for good; what had the name before is replaced in one step. */
export async function moveInto(file: string, target: string): Promise<void> {
  const directory = dirname(target)
  const made = await mkdir(directory).then(
    () => true,
    (error: unknown) => {
      if (isErrno(error, 'EEXIST')) return false
      throw error
    },
  )
  await rename(file, target)
  await sync(directory)
  if (made) await sync(dirname(directory))
}

/** The same error in the user's terms where the disk is to blame. */
export function explainDisk(error: unknown, directory: string): unknown {
  const said = error instanceof MusterError && error.details.some(line => /No space left on device/i.test(line))
  if (!said && !isErrno(error, 'ENOSPC') && !isErrno(error, 'EDQUOT')) return error
  return new MusterError('DISK_FULL', `${directory}: no space is left on the disk`, { cause: error })
}
