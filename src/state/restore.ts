import type { Stats } from 'node:fs'
import { copyFile, link, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf, MusterError } from '../lib/errors.ts'
import { makeSelfContained } from './backup.ts'
import { firstProblem } from './database.ts'
import { COMPANIONS, isErrno, realFile, remove, replaceFile, sync } from './files.ts'
import { lockState } from './lock.ts'
import { applicationId, APPLICATION_ID, SCHEMA_VERSION, schemaVersion } from './migrations.ts'

/**
 * Puts a backup in the place of a state file that nobody uses, and keeps the old one as `FILE.before-restore`.
 * Killed at any instant, it leaves the old state or the new one, and can be run again.
 */
export async function restoreSqlite(backup: string, file: string): Promise<void> {
  const target = await realFile(file)
  const lock = await lockState(target)
  try {
    await refuseLive(backup, target)
    await replaceFile(target, async temporary => {
      await copyFile(backup, temporary)
      verify(temporary, backup)
      await keepOld(target)
    })
  } finally {
    lock[Symbol.dispose]()
  }
}

/** A state file alone lacks what is still in its log, and only the program that owns it can copy it without tearing it. */
async function refuseLive(backup: string, target: string): Promise<void> {
  const [source, old, log] = await Promise.all([statOf(backup), statOf(target), statOf(`${backup}-wal`)])
  if (source === undefined) throw invalid(backup, 'there is no such file')
  if (source.ino === old?.ino && source.dev === old.dev) throw invalid(backup, 'is the state itself')
  if (log !== undefined) throw invalid(backup, 'has a write-ahead log beside it, so it is no finished backup')
}

/** Looks at the copy, because that is what will be used. */
function verify(copy: string, backup: string): void {
  try {
    makeSelfContained(copy)
    using database = new DatabaseSync(copy, { readOnly: true })
    if (applicationId(database) !== APPLICATION_ID) throw invalid(backup, 'is not a backup of muster')
    const version = schemaVersion(database)
    if (version < 1 || version > SCHEMA_VERSION) {
      throw invalid(backup, `has layout ${version}, this muster knows 1 to ${SCHEMA_VERSION}`)
    }
    const problem = firstProblem(database, 'integrity_check')
    if (problem !== undefined) throw invalid(backup, problem)
  } catch (error) {
    throw error instanceof MusterError ? error : invalid(backup, messageOf(error), error)
  }
}

/**
 * The old log must be gone before the new state is in place, or SQLite would replay it into that. So it is first brought into
 * the old file; should SQLite leave it where it is, it is kept beside the old file.
 */
async function keepOld(file: string): Promise<void> {
  const kept = `${file}.before-restore`
  if ((await statOf(file)) !== undefined) {
    try {
      makeSelfContained(file)
    } catch {
      // Damaged: a good reason to restore, and no reason not to.
    }
    await remove(kept, ...COMPANIONS.map(suffix => kept + suffix))
    await link(file, kept)
    if ((await statOf(`${file}-wal`)) !== undefined) await rename(`${file}-wal`, `${kept}-wal`)
  }
  await remove(...COMPANIONS.map(suffix => file + suffix))
  await sync(dirname(file))
}

/** undefined when there is no such file. */
async function statOf(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file)
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    throw error
  }
}

const invalid = (backup: string, problem: string, cause?: unknown): MusterError =>
  new MusterError('BACKUP_INVALID', `${backup}: ${problem}`, { cause })
