import { type Figure, against, median, round } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { LOAD_CORE, Pinned, SERVER_CORE } from './pinned.ts'
import type { AskSkills } from './programs/ask.ts'
import type { PlainSkills } from './programs/plain.ts'
import type { ServerSkills } from './programs/server.ts'

const NODES = 20_000
const AT_ONCE = 64
const ROUNDS = 5
/** A script of ours is about so long. */
const LENGTH = 1900
/** On one core: 5,000 a second. */
const MOST_CPU = 0.2
const MOST_P99 = 50
/** Of Warewulf 4.7 with 10,000 nodes, on a machine like the one this was written on: 621 a second. */
const WAREWULF = 1000 / 621

interface Round {
  readonly cpu: number
  readonly wall: number
  readonly p99: number
}

/**
 * Boot scripts for all nodes, each over a connection of its own: by a boot server, by a server that also records them, and by
 * Node's own HTTP server that says the same to everybody, in turns.
 */
export async function* scriptFigures(): AsyncGenerator<Figure> {
  await using dir = await temporaryDir()
  await using load = await Pinned.start<AskSkills>('ask', LOAD_CORE)
  await using boot = await Pinned.start<ServerSkills>('server', SERVER_CORE)
  await using all = await Pinned.start<ServerSkills>('server', SERVER_CORE)
  await using plain = await Pinned.start<PlainSkills>('plain', SERVER_CORE)
  const servers = {
    boot: {
      usage: () => boot.ask('usage'),
      url: await boot.ask('start', { dir: `${dir.path}/1`, nodes: NODES, role: 'boot' }),
    },
    all: {
      usage: () => all.ask('usage'),
      url: await all.ask('start', { dir: `${dir.path}/2`, nodes: NODES, role: 'all' }),
    },
    plain: { usage: () => plain.ask('usage'), url: await plain.ask('start', `#!ipxe\n${'#'.repeat(LENGTH)}`) },
  }
  const rounds: Record<keyof typeof servers, Round[]> = { boot: [], all: [], plain: [] }
  for (let run = 0; run <= ROUNDS; run++) {
    for (const name of ['boot', 'all', 'plain'] as const) {
      const { url, usage } = servers[name]
      const before = await usage()
      const { seconds, p99, failed } = await load.ask('ask', { url, nodes: NODES, atOnce: AT_ONCE, requests: NODES })
      if (failed > 0) throw new Error(`${failed} of ${NODES} scripts did not come`)
      const cpu = ((await usage()).cpu - before.cpu) / NODES
      // In the first round code is still being compiled.
      if (run > 0) rounds[name].push({ cpu: cpu * 1000, wall: (seconds / NODES) * 1000, p99 })
    }
  }
  const of = (name: keyof typeof servers, what: keyof Round): number => median(rounds[name].map(each => each[what]))
  const floor = of('plain', 'cpu')
  const what = `boot scripts of ${NODES} nodes over new connections`
  yield figure(`${what}: server CPU each`, of('boot', 'cpu'), against(MOST_CPU, of('boot', 'cpu')))
  yield figure(`${what}: server CPU each`, of('boot', 'cpu'), to("Node's HTTP server alone", of('boot', 'cpu') / floor))
  yield figure(
    `${what}, recorded by the same server: server CPU each`,
    of('all', 'cpu'),
    against(MOST_CPU, of('all', 'cpu')),
  )
  yield figure(
    `${what}: time each`,
    of('boot', 'wall'),
    to('Warewulf 4.7 with 10,000 nodes, 621/s', of('boot', 'wall') / WAREWULF),
  )
  yield figure(`${what}, ${AT_ONCE} at a time: p99`, of('boot', 'p99'), against(MOST_P99, of('boot', 'p99')))
}

const to = (peer: string, ratio: number) => ({ peer, ratio: round(ratio) })

const figure = (name: string, value: number, held: object): Figure => ({
  bench: 'boot',
  case: name,
  value,
  unit: 'ms',
  ...held,
})
