import { createHash } from 'node:crypto'
import http from 'node:http'
import { type Agents, type Pace, type SimulatedNode, type SimulationOptions, runSimulatedNode } from './node.ts'

/** About what a machine takes from power-on, without the firmware's own tests. */
const PACE: Pace = { firmware: 3000, kernel: 3000, agent: 5000 }

/** Boots all of them and keeps them alive until the signal: thousands in one process. */
export async function simulate(
  nodes: readonly SimulatedNode[],
  options: SimulationOptions,
  pace: Pace = PACE,
): Promise<void> {
  const agents: Agents = {
    fresh: new http.Agent({ keepAlive: false }),
    kept: new http.Agent({ keepAlive: true, maxSockets: 256, scheduling: 'fifo' }),
  }
  await Promise.all(nodes.map(node => runSimulatedNode(node, options, pace, agents)))
  agents.kept.destroy()
}

/**
 * A MAC of its own for every name, the same every time; of those that are given out locally. Three bytes of it, as QEMU's own
 * range has, would be too few: of five thousand machines two would share one.
 */
export function labMac(name: string): string {
  const bytes = createHash('sha256').update(name).digest().subarray(0, 5)
  return ['52', ...[...bytes].map(byte => byte.toString(16).padStart(2, '0'))].join(':')
}
