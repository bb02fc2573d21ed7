import { exec } from '../../src/lib/exec.ts'
import { median } from '../figure.ts'

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

/** Medians of several measurements, taken in turns: what else the machine does hits all of them alike. */
export async function inTurns<Name extends string>(
  rounds: number,
  measure: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(measure) as Name[]
  const values = new Map<Name, number[]>(names.map(name => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      // What the one before wrote is not this one's burden.
      await exec('sync', [], { timeout: 0 })
      values.get(name)?.push(await measure[name]())
    }
  }
  return Object.fromEntries(names.map(name => [name, median(values.get(name) ?? [])])) as Record<Name, number>
}
