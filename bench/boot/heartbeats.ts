import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Event } from '../../src/state/store.ts'
import { type Figure, against, round } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { LOAD_CORE, Pinned, SERVER_CORE } from './pinned.ts'
import type { BeatSkills } from './programs/beat.ts'
import type { PlainSkills } from './programs/plain.ts'
import type { ServerSkills } from './programs/server.ts'
import { benchNode } from './world.ts'

/** As many as there are, and as may be connected to one process of this machine; fewer speak the more often. */
const NODES = Math.min(20_000, mostFiles() - 1200)
const INTERVAL = NODES / 2
/** All nodes have been heard once, and recorded as up. */
const WARM = 15_000
const MEASURED = 60_000
const FLOOR_MEASURED = 20_000
const SILENT = Array.from({ length: 10 }, (_, index) => 1000 + index * 1900)

const MOST_CPU = 0.2
/** Between two commits: ten a second. */
const SHORTEST = 0.1
const SOON = 40
const PLAIN = "Node's HTTP server alone"

type Connections = 'kept' | 'new'

/**
 * Heartbeats of all nodes every ten seconds, recorded in SQLite by the same server: over connections that are kept, as agents
 * do, and over new ones, as those of images without curl have to. Ten of them stop on the way.
 */
export async function* heartbeatFigures(): AsyncGenerator<Figure> {
  yield* figuresOf('kept', { limit: MOST_CPU })
  yield* figuresOf('new', { floor: await floorOf() })
}

/** What the CPU is compared with: the limit, or what Node's own HTTP server takes. */
interface Compared {
  readonly limit?: number
  readonly floor?: number
}

async function* figuresOf(connections: Connections, { limit, floor }: Compared): AsyncGenerator<Figure> {
  await using dir = await temporaryDir()
  await using server = await Pinned.start<ServerSkills>('server', SERVER_CORE)
  const url = await server.ask('start', { dir: dir.path, nodes: NODES, role: 'all' })
  await using load = await Pinned.start<BeatSkills>('beat', LOAD_CORE)
  await load.ask('start', { url, nodes: NODES, interval: INTERVAL, connections })
  await pause(WARM)
  await load.ask('result')
  const before = await server.ask('usage')
  await load.ask('silence', SILENT)
  await pause(MEASURED)
  const after = await server.ask('usage')
  const { beats, failed, p99 } = await load.ask('result')
  const what = `heartbeats of ${NODES} nodes every ${INTERVAL / 1000} s over ${connections} connections`
  const cpu = (after.cpu - before.cpu) / (MEASURED / 1000)
  if (limit !== undefined) yield figure(`${what}: server CPU in a second`, cpu, 's', against(limit, cpu))
  if (floor !== undefined)
    yield figure(`${what}: server CPU in a second`, cpu, 's', { peer: PLAIN, ratio: round(cpu / floor) })
  yield commitFigure(`${what}: between commits while all of them appear`, before.commits, WARM)
  yield commitFigure(`${what}: between commits`, after.commits - before.commits, MEASURED)
  yield figure(`${what}: p99 of ${beats}, ${failed} of them unanswered`, p99, 'ms')
  const answered = await load.ask('lastAnswered', SILENT)
  const { noticed, slowest, falsely } = judge(await server.ask('events', 'node.silent'), answered)
  const words = `${noticed} of ${SILENT.length} silent ones noticed and ${falsely} others`
  yield figure(`${what}: ${words}, the last after`, slowest, 's', against(SOON, slowest))
}

/** Seconds of CPU in a second that Node's own HTTP server takes to say the same to everybody. */
async function floorOf(): Promise<number> {
  await using plain = await Pinned.start<PlainSkills>('plain', SERVER_CORE)
  const url = await plain.ask('start', 'interval=10\n')
  await using load = await Pinned.start<BeatSkills>('beat', LOAD_CORE)
  await load.ask('start', { url, nodes: NODES, interval: INTERVAL, connections: 'new' })
  await pause(WARM)
  const before = await plain.ask('usage')
  await pause(FLOOR_MEASURED)
  return ((await plain.ask('usage')).cpu - before.cpu) / (FLOOR_MEASURED / 1000)
}

interface Judged {
  readonly noticed: number
  /** Seconds from the last answer to its last heartbeat. */
  readonly slowest: number
  readonly falsely: number
}

function judge(events: readonly Event[], answered: readonly number[]): Judged {
  const last = new Map(SILENT.map((number, index) => [benchNode(number).name, answered[index] ?? Number.NaN]))
  const noticed = events.filter(({ nodes = '' }) => last.has(nodes))
  const times = noticed.map(({ nodes = '', time }) => (Date.parse(time) - (last.get(nodes) ?? Number.NaN)) / 1000)
  return { noticed: noticed.length, slowest: Math.max(...times), falsely: events.length - noticed.length }
}

/** Each of them is an fsync. */
function commitFigure(name: string, commits: number, milliseconds: number): Figure {
  const between = milliseconds / 1000 / Math.max(commits, 1)
  return figure(name, between, 's', { peer: `limit ${SHORTEST}, at least`, ratio: round(SHORTEST / between) })
}

function mostFiles(): number {
  const [, most = '1024'] = /^Max open files +\d+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
  return Number(most)
}

const figure = (name: string, value: number, unit: 's' | 'ms', held: object = {}): Figure => ({
  bench: 'boot',
  case: name,
  value,
  unit,
  ...held,
})
