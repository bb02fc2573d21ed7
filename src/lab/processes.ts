import { readFileSync } from 'node:fs'
import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { LAB_VARIABLE, type LabNames, NAMESPACES } from './names.ts'

/**
 * A process and no other: numbers are used again, so the time of its start belongs to it, and that counts from the start
 * of the system, so the system's boot id does too.
 */
export const ProcessId = z.strictObject({
  pid: z.int().positive(),
  start: z.string().regex(/^\d+$/),
  boot: z.string().min(1),
})
export type ProcessId = Readonly<z.infer<typeof ProcessId>>

const PATIENCE = 10_000
/** Nobody tells us of the end of a process that is not our child. */
const LOOK_AGAIN = 10
/** How often one is looked at that shows nothing. */
const LOOKS = 20
const NOWHERE = ''
/** Seconds. */
const YOUNG = 120
/** The kernel counts in hundredths of a second for all who read /proc, on every machine (USER_HZ). */
const TICKS = 100
/** How often those who come to light after the end of their parents are ended in turn. */
const ROUNDS = 20

export const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

/** Nothing where no such process runs; one that has ended and waits for its parent to notice does not run. */
export function identify(pid: number): ProcessId | undefined {
  const seen = statOf(pid)
  return seen === undefined ? undefined : { pid, start: seen.start, boot: bootId() }
}

export function isRunning({ pid, start, boot }: ProcessId): boolean {
  return boot === bootId() && statOf(pid)?.start === start
}

/** Asks it to end, insists after a while, and returns when it is gone. */
export async function endProcess(id: ProcessId, patience = PATIENCE): Promise<void> {
  send(id, 'SIGTERM')
  if (await isGone(id, patience)) return
  send(id, 'SIGKILL')
  if (await isGone(id, PATIENCE)) return
  throw new MusterError('LAB_FAILED', `process ${id.pid} does not end, although it was killed`, {
    hint: `see what it waits for: cat /proc/${id.pid}/stack`,
  })
}

/** Whether it ended within that many milliseconds. */
export async function isGone(id: ProcessId, within: number): Promise<boolean> {
  const deadline = performance.now() + within
  while (isRunning(id)) {
    if (performance.now() >= deadline) return false
    await pause(LOOK_AGAIN)
  }
  return true
}

export function send(id: ProcessId, signal: NodeJS.Signals): void {
  if (!isRunning(id)) return
  try {
    process.kill(id.pid, signal)
  } catch {
    // It has ended meanwhile.
  }
}

/**
 * Ends whatever belongs to a lab, recorded or not. Parents first: a server stops those it started better than we could,
 * and would start anew what ends before it does.
 */
export async function endAll(lab: LabNames): Promise<number> {
  let ended = 0
  for (let round = 0; round < ROUNDS; round++) {
    const found = await processesOf(lab)
    const pids = new Set(found.map(({ pid }) => pid))
    const first = found.filter(({ parent }) => !pids.has(parent))
    if (first.length === 0) return ended
    await Promise.all(first.map(id => endProcess(id)))
    ended += first.length
  }
  throw new MusterError('LAB_FAILED', 'something in the lab starts processes faster than they can be ended')
}

/** Every process whose environment says that it is the lab's; neither ourselves nor those who started us. */
export async function processesOf(lab: LabNames): Promise<(ProcessId & { readonly parent: number })[]> {
  const ours = ancestors()
  const places = await Promise.all([lab.head, lab.switch].map(name => identityOf(join(NAMESPACES, name))))
  const found: (ProcessId & { readonly parent: number })[] = []
  for (const name of await readdir('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || ours.has(pid)) continue
    const seen = statOf(pid)
    if (seen === undefined || !(await belongs(pid, seen.start, `${LAB_VARIABLE}=${lab.id}`, places))) continue
    const id = { pid, start: seen.start, boot: bootId() }
    // The environment that was read was its own, not that of one that came after it.
    if (isRunning(id)) found.push({ ...id, parent: seen.parent })
  }
  return found
}

/**
 * While a process turns into another program (execve) it has no environment to be seen for a moment. Whoever is in a
 * namespace of the lab then is the lab's; a young one elsewhere is looked at again.
 */
async function belongs(pid: number, start: string, mark: string, places: readonly string[]): Promise<boolean> {
  for (let look = 0; look < LOOKS; look++) {
    const environment = await environmentOf(pid)
    if (environment.length > 0) return environment.includes(mark)
    const place = await identityOf(`/proc/${pid}/ns/net`)
    const isProgram = (await identityOf(`/proc/${pid}/exe`)) !== NOWHERE
    if (!isProgram || place === NOWHERE) return false
    if (places.includes(place)) return true
    if (!isYoung(start)) return false
    await pause(LOOK_AGAIN)
  }
  return false
}

/** Two paths that lead to the same thing. */
const identityOf = (path: string): Promise<string> =>
  stat(path).then(
    ({ dev, ino }) => `${dev} ${ino}`,
    () => NOWHERE,
  )

const isYoung = (start: string): boolean =>
  Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) - Number(start) / TICKS < YOUNG

/** As `NAME=VALUE`; empty where there is none to read. */
export const environmentOf = (pid: number): Promise<string[]> =>
  readFile(`/proc/${pid}/environ`, 'latin1').then(
    text => text.split('\0').filter(line => line !== ''),
    () => [],
  )

function ancestors(): Set<number> {
  const found = new Set<number>()
  for (let pid = process.pid; pid > 0 && !found.has(pid); pid = statOf(pid)?.parent ?? 0) found.add(pid)
  return found
}

/**
 * See proc_pid_stat(5); the name of the program, in parentheses, may contain anything. A process whose first thread has
 * ended (Z) still runs, and holds its files and sockets, as long as it has others.
 */
function statOf(pid: number): { readonly parent: number; readonly start: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const [state, parent, threads, start] = [fields[0], fields[1], fields[17], fields[19]]
    const hasEnded = state === 'X' || (state === 'Z' && Number(threads) <= 1)
    if (parent === undefined || start === undefined || hasEnded) return undefined
    return { parent: Number(parent), start }
  } catch {
    return undefined
  }
}
