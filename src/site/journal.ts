import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { type Repository, gitDirectory, resolveCommit, restorePaths } from './git.ts'

/**
 * Changing files and committing them are two steps. What is about to be changed is noted first, so that whoever finds the
 * note of a process that died in between can put the files back to what the last commit says.
 */
const Note = z.strictObject({ pid: z.int(), started: z.string(), paths: z.array(z.string()) })

const noteOf = async (repo: Repository): Promise<string> => join(await gitDirectory(repo), 'muster-edit.json')

/** Runs a change of these paths that ends with a commit; one at a time for a repository. */
export async function journaled<Result>(
  repo: Repository,
  paths: readonly string[],
  change: () => Promise<Result>,
): Promise<Result> {
  await recover(repo)
  const note = await noteOf(repo)
  const file = await open(note, 'wx').catch(() => {
    throw busy()
  })
  try {
    await file.writeFile(JSON.stringify({ pid: process.pid, started: await startOf(process.pid), paths }))
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    return await change()
  } finally {
    await rm(note, { force: true })
  }
}

/** Undoes what a process that is no more left half done. */
export async function recover(repo: Repository): Promise<void> {
  const note = await noteOf(repo)
  const text = await readFile(note, 'utf8').catch(() => undefined)
  if (text === undefined) return
  const { pid, started, paths } = readNote(text)
  if (pid !== undefined && (await startOf(pid)) === started) throw busy()
  if ((await resolveCommit(repo, 'HEAD')) !== undefined) await restorePaths(repo, paths)
  for (const path of paths) await rm(join(repo.dir, repo.prefix, `${path}.muster-new`), { force: true })
  await rm(note, { force: true })
}

/** A note that was not written to its end promises nothing: no file had been touched yet. */
function readNote(text: string): { pid?: number; started?: string; paths: string[] } {
  try {
    return Note.parse(JSON.parse(text))
  } catch {
    return { paths: [] }
  }
}

/** When a process began, as the kernel counts; '' when there is none. Ids are used again, in containers at once. */
async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name, in brackets, may hold anything; what follows are numbers, the 20th of them the time.
  return (
    stat
      .slice(stat.lastIndexOf(')') + 1)
      .trim()
      .split(' ')[19] ?? ''
  )
}

const busy = (): MusterError => new MusterError('SITE_BUSY', 'somebody else is changing the site right now')
