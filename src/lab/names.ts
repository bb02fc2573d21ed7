import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { isErrno } from '../state/files.ts'

/**
 * Everything a lab makes outside its directory bears the lab's id, and the id follows from the directory: what a lab left
 * behind is found again by whoever opens the directory, even when nothing was written down.
 */
export interface LabNames {
  readonly id: string
  /** The namespace in which the server runs. */
  readonly head: string
  /** The namespace of the bridge and of the machines. */
  readonly switch: string
  /** Sockets of the machines: a path in the lab's directory may be longer than a socket's may be (107 bytes). */
  readonly run: string
}

export const NAMESPACES = '/run/netns'
/** In the environment of every process of a lab, and so of their children: which lab it belongs to. */
export const LAB_VARIABLE = 'MUSTER_LAB_ID'
export const NODE_VARIABLE = 'MUSTER_LAB_NODE'

export const labNames = (dir: string): LabNames => {
  const id = digest(dir).slice(0, 8)
  return { id, head: `muster-${id}-head`, switch: `muster-${id}-switch`, run: `/run/muster-lab-${id}` }
}

/** The directory behind any symbolic links, whether it exists yet or not. */
export async function realDirectory(dir: string): Promise<string> {
  const absolute = resolve(dir)
  try {
    return await realpath(absolute)
  } catch (error) {
    if (!isErrno(error, 'ENOENT') || dirname(absolute) === absolute) throw error
    return join(await realDirectory(dirname(absolute)), basename(absolute))
  }
}

/** Linux gives an interface 15 bytes; the others are the kernel's own names, or begin like ours. */
const FITTING = /^(?!lo$|all$|default$)[A-Za-z0-9][A-Za-z0-9.-]{0,14}$/

/** The port of the switch that a node is plugged into: named after it where the name fits. */
export const portName = (node: string): string => (FITTING.test(node) ? node : `_${digest(node).slice(0, 12)}`)

/** The same machine, the same UUID; version 8 of RFC 9562, which leaves the meaning to us. */
export function uuidOf(mac: string): string {
  const hex = digest(mac)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
