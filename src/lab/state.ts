import { readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { isErrno, replaceFile } from '../state/files.ts'
import { LabPlan } from './plan.ts'
import { ProcessId } from './processes.ts'

/** What is written down before the first part of a lab is made. */
export const LabState = z.strictObject({
  version: z.literal(1),
  phase: z.enum(['starting', 'running', 'stopping']),
  /** Who starts or stops it, or did. */
  owner: ProcessId,
  plan: LabPlan,
  accelerator: z.strictObject({ accelerator: z.enum(['kvm', 'tcg']), reason: z.string() }).optional(),
  server: ProcessId.optional(),
})
export type LabState = z.infer<typeof LabState>

const fileOf = (dir: string): string => join(dir, 'state.json')

/** Nothing where no lab is, nor was left behind. */
export async function readState(dir: string): Promise<LabState | undefined> {
  const file = fileOf(dir)
  try {
    return LabState.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR')) return undefined
    throw new MusterError('STATE_DAMAGED', `${file} cannot be understood`, {
      hint: 'clear the lab away with: muster lab down',
      cause: error,
    })
  }
}

/** The server's environment may hold secrets: for our eyes only. */
export async function writeState(dir: string, state: LabState): Promise<void> {
  await replaceFile(fileOf(dir), file => writeFile(file, `${JSON.stringify(state, null, 2)}\n`))
}

/** Also what somebody who was killed while writing has left. */
export async function removeState(dir: string): Promise<void> {
  for (const name of await readdir(dir))
    if (/^(state|kvm)\.json\.[0-9a-f]{8}\.tmp$/.test(name)) await rm(join(dir, name), { force: true })
  await rm(fileOf(dir), { force: true })
}
