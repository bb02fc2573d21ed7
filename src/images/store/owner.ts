import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'

/**
 * A file that is being written says in its name whose it is: `PID-START.RANDOM`. While that process runs, the file is
 * nobody else's business. Numbers of processes are used again, in a container at every start; the time of the start
 * tells them apart.
 */
export const NOBODY = '0-0'
const STARTED = 22

export const ownedName = (owner: string = thisProcess()): string => `${owner}.${randomBytes(9).toString('hex')}`

const thisProcess = (): string => `${process.pid}-${startOf(process.pid) ?? 0}`

export function isAlive(owner: string): boolean {
  const [pid, start] = owner.split('-')
  return owner !== NOBODY && start !== undefined && startOf(Number(pid)) === start
}

/** See proc_pid_stat(5); the name of the program, in parentheses, may contain anything. */
function startOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[STARTED - 3]
  } catch {
    return undefined
  }
}
