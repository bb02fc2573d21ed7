import type { Choice } from './kvm.ts'
import type { Machine } from './machine.ts'
import { bootId, isRunning } from './processes.ts'
import type { Firmware } from './qemu.ts'
import type { LabState } from './state.ts'

export interface LabNodeStatus {
  readonly name: string
  readonly mac: string
  readonly power: 'on' | 'off'
  readonly pid?: number
  readonly consoleLog: string
}

export interface LabStatus {
  readonly id: string
  readonly dir: string
  /** `interrupted`: whoever started or stopped it was killed; the next `up` or `down` clears it away. */
  readonly state: 'down' | 'starting' | 'up' | 'stopping' | 'interrupted'
  readonly firmware?: Firmware
  readonly accelerator?: Choice
  readonly server?: { readonly url: string; readonly log: string; readonly isRunning: boolean; readonly pid?: number }
  readonly nodes: readonly LabNodeStatus[]
}

/** A phase that nobody works on any more was interrupted; one from before the machine's last start is over. */
export function stateOf({ phase, owner }: LabState): LabStatus['state'] {
  if (phase === 'running') return owner.boot === bootId() ? 'up' : 'interrupted'
  return isRunning(owner) ? phase : 'interrupted'
}

export async function statusOf(machine: Machine): Promise<LabNodeStatus> {
  const running = await machine.process()
  return {
    name: machine.spec.name,
    mac: machine.spec.mac,
    power: running === undefined ? 'off' : 'on',
    ...(running && { pid: running.pid }),
    consoleLog: machine.files.consoleLog,
  }
}
