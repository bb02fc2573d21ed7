import { setTimeout as pause } from 'node:timers/promises'
import type { Figure } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { LOAD_CORE, Pinned, SERVER_CORE } from './pinned.ts'
import type { ServerSkills } from './programs/server.ts'
import type { SimulateSkills } from './programs/simulate.ts'

const NODES = 2000

/** Simulated nodes that are all switched on at the same moment, against one server that records what they say. */
export async function* stormFigures(): AsyncGenerator<Figure> {
  await using dir = await temporaryDir()
  await using server = await Pinned.start<ServerSkills>('server', SERVER_CORE)
  const url = await server.ask('start', { dir: dir.path, nodes: 20_000, role: 'all' })
  await using load = await Pinned.start<SimulateSkills>('simulate', LOAD_CORE)
  const began = Date.now()
  const before = await server.ask('usage')
  const { ready } = await load.ask('storm', { url, nodes: NODES })
  const recorded = await lastRecorded(server)
  const after = await server.ask('usage')
  const storm = `${NODES} simulated nodes switched on at once`
  const at = (share: number): number => ready[Math.ceil(NODES * share) - 1] ?? Number.NaN
  yield figure(`${storm}: half of them ready`, at(0.5))
  yield figure(`${storm}: 99 of 100 ready`, at(0.99))
  yield figure(`${storm}: all ready`, at(1))
  yield figure(
    `${storm}: all recorded as ready, in ${after.commits - before.commits} commits`,
    (recorded - began) / 1000,
  )
  yield figure(`${storm}: server CPU`, after.cpu - before.cpu)
}

/** When the last of all nodes was recorded as ready, in milliseconds since 1970. */
async function lastRecorded(server: Pinned<ServerSkills>): Promise<number> {
  for (;;) {
    const events = await server.ask('events', 'node.boot')
    const times = events
      .filter(({ data }) => (data as { phase: string }).phase === 'ready')
      .map(({ time }) => Date.parse(time))
    if (times.length >= NODES) return Math.max(...times)
    await pause(200)
  }
}

const figure = (name: string, value: number): Figure => ({ bench: 'boot', case: name, value, unit: 's' })
