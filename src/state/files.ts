import { randomBytes } from 'node:crypto'
import { open, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** What SQLite may keep beside a database. */
export const COMPANIONS = ['-wal', '-shm', '-journal'] as const

/** The file behind any symbolic links, whether it exists yet or not, so that one file has one name (and one lock). */
export async function realFile(file: string): Promise<string> {
  try {
    return await realpath(file)
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error
    return join(await realpath(dirname(file)), basename(file))
  }
}

/** Makes an empty file for our eyes only; one that exists is left alone, and above all not opened (see `lock.ts`). */
export async function createPrivate(file: string): Promise<void> {
  try {
    await (await open(file, 'wx', 0o600)).close()
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return
    throw error
  }
  await sync(dirname(file))
}

/** Has `write` fill a private file beside the target, and puts it in the target's place when it is safely on disk. */
export async function replaceFile(target: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${target}.${randomBytes(4).toString('hex')}.tmp`
  try {
    await createPrivate(temporary)
    await write(temporary)
    await sync(temporary)
    await rename(temporary, target)
  } catch (error) {
    await remove(temporary, ...COMPANIONS.map(suffix => temporary + suffix))
    throw error
  }
  await sync(dirname(target))
}

export async function remove(...files: readonly string[]): Promise<void> {
  await Promise.all(files.map(file => rm(file, { force: true })))
}

/** Waits until a file's content, or a directory's list of names, is on disk. */
export async function sync(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

export const isErrno = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
