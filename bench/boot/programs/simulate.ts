import { simulate } from '../../../src/lab/simulated/simulate.ts'
import { answerWith } from '../skills.ts'
import { benchNodes } from '../world.ts'

export interface Storm {
  readonly url: string
  readonly nodes: number
}

export interface Stormed {
  /** Seconds from power-on until each was ready, in order. */
  readonly ready: readonly number[]
}

/** Machines of no delay of their own: whatever they wait for is the server. */
const PACE = { firmware: 0, kernel: 0, agent: 0 }

async function storm({ url, nodes }: Storm): Promise<Stormed> {
  const all = new AbortController()
  const ready: number[] = []
  const began = performance.now()
  const onPhase = (_: unknown, phase: string): void => {
    if (phase !== 'ready') return
    ready.push((performance.now() - began) / 1000)
    if (ready.length === nodes) all.abort()
  }
  await simulate(benchNodes(nodes), { servers: [url], signal: all.signal, fetch: 'whole', onPhase }, PACE)
  return { ready }
}

const skills = { storm }
export type SimulateSkills = typeof skills
answerWith(skills)
