import { answerWith } from '../skills.ts'
import { benchNode } from '../world.ts'
import { exchange } from '../exchange.ts'
import { HeartbeatStream } from '../heartbeat-stream.ts'

export interface BeatLoad {
  readonly url: string
  readonly nodes: number
  /** Milliseconds. */
  readonly interval: number
  /** Agents keep one; only those of images without curl make a new one for each. */
  readonly connections: 'kept' | 'new'
}

export interface BeatResult {
  readonly beats: number
  readonly failed: number
  readonly p99: number
}

/** As the agent: up to two seconds more or less. */
const JITTER = 2000

let times: number[] = []
let failed = 0
const stopped = new Set<number>()
/** When the node of that number was last answered, in milliseconds since 1970. */
const answered = new Map<number, number>()

/** Every node sends its heartbeats, until the end of this program. */
function start(load: BeatLoad): void {
  for (let number = 1; number <= load.nodes; number++)
    setTimeout(() => void beat(number, load.interval, senderOf(number, load)), Math.random() * load.interval)
}

async function beat(number: number, interval: number, send: () => Promise<boolean>): Promise<void> {
  if (stopped.has(number)) return
  setTimeout(() => void beat(number, interval, send), interval + (Math.random() - 0.5) * 2 * JITTER)
  const began = performance.now()
  const isAnswered = await send()
  times.push(performance.now() - began)
  if (isAnswered) answered.set(number, Date.now())
  else failed++
}

function senderOf(number: number, { url, connections }: BeatLoad): () => Promise<boolean> {
  const port = Number(new URL(url).port)
  if (connections === 'new') return () => overNew(port, number, heartbeatOf(number))
  const stream = new HeartbeatStream(port, number, heartbeatOf(number))
  return () => stream.beat()
}

function heartbeatOf(number: number): string {
  const { name, mac } = benchNode(number)
  return JSON.stringify({
    boot: number.toString(16).padStart(16, '0'),
    mac,
    node: name,
    hostname: name,
    image: `sha256:${'a'.repeat(64)}`,
    kernel: '6.1.0-40-amd64',
    bootId: '1d9bb1c8-2f0e-4b6e-9d57-0a4d3a2c8a10',
    uptime: Math.round(performance.now()) / 1000,
    addresses: ['10.1.12.34/12', 'fe80::5054:ff:fe00:1/64'],
    health: { status: 'ok', reason: '' },
  })
}

const overNew = async (port: number, number: number, body: string): Promise<boolean> =>
  (
    await exchange(
      port,
      number,
      `POST /node/heartbeat HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  ).endsWith('\ninterval=10\n')

/** What happened since it was last asked. */
function result(): BeatResult {
  times.sort((a, b) => a - b)
  const since = { beats: times.length, failed, p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
  times = []
  failed = 0
  return since
}

const skills = {
  start,
  result,
  /** These say nothing any more. */
  silence: (numbers: readonly number[]): void => numbers.forEach(number => stopped.add(number)),
  lastAnswered: (numbers: readonly number[]): number[] => numbers.map(number => answered.get(number) ?? Number.NaN),
}
export type BeatSkills = typeof skills
answerWith(skills)
