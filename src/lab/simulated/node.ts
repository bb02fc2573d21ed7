import { createHash } from 'node:crypto'
import http, { type Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { readScript } from './script.ts'

/** A node that is simulated: it speaks the HTTP of a real one, goes through the same phases, and runs nothing. */
export interface SimulatedNode {
  readonly name: string
  readonly mac: string
}

export interface SimulationOptions {
  /** Boot servers, as a loader is told. */
  readonly servers: readonly [string, ...string[]]
  readonly signal: AbortSignal
  /** Whether artefacts are fetched whole and hashed, or only asked for. */
  readonly fetch: 'whole' | 'headers'
  /** Seconds between heartbeats; what the server says unless given. */
  readonly interval?: number
  readonly onPhase?: (node: SimulatedNode, phase: string) => void
}

/** A phase takes a simulated machine so long, in milliseconds: firmware, kernel, services. */
export interface Pace {
  readonly firmware: number
  readonly kernel: number
  readonly agent: number
}

/** From power-on until the signal: boots, and then sends its heartbeats. */
export async function runSimulatedNode(
  node: SimulatedNode,
  options: SimulationOptions,
  pace: Pace,
  agents: Agents,
): Promise<void> {
  const { signal } = options
  while (!signal.aborted) {
    try {
      await pause(jitter(pace.firmware), undefined, { signal })
      const boot = await bootOnce(node, options, pace, agents)
      if (boot === undefined) await pause(jitter(30_000), undefined, { signal })
      else await beat(node, boot, options, agents)
    } catch {
      // As a real one would: a pause, and from the start again.
      await pause(jitter(5000), undefined, { signal }).catch(() => {})
    }
  }
}

/** Boots make new connections, heartbeats keep theirs. */
export interface Agents {
  readonly fresh: Agent
  readonly kept: Agent
}

interface Booted {
  readonly base: string
  readonly id: string
  readonly image: string
}

async function bootOnce(
  node: SimulatedNode,
  options: SimulationOptions,
  pace: Pace,
  agents: Agents,
): Promise<Booted | undefined> {
  const { signal } = options
  const base = options.servers[0]
  const ask = (path: string, method = 'GET', body?: string): Promise<Answer> =>
    request(base + path, { method, body, agent: agents.fresh, signal })
  await ask('/boot.ipxe')
  const query = `mac=${node.mac.replaceAll(':', '-')}&uuid=&platform=efi&arch=x86_64&serial=SIM-${node.name}&product=simulated`
  const script = readScript((await ask(`/boot/script?${query}`)).text)
  options.onPhase?.(node, 'loader')
  // Whom nobody knows gets the discovery system, which is not simulated.
  if (script === undefined || script.args.has('muster.mode')) return undefined
  const id = script.args.get('muster.boot') ?? ''
  const image = script.args.get('muster.image') ?? ''
  const step = (name: string): Promise<Answer> => ask(`/boot/step?boot=${id}&mac=${node.mac}&step=${name}`)
  const say = (phase: string, detail?: string): Promise<Answer> =>
    ask(
      '/node/report',
      'POST',
      JSON.stringify({ boot: id, mac: node.mac, phase, ago: 0, ...(detail !== undefined && { detail }) }),
    )
  await step('kernel')
  for (const path of [script.kernel, ...script.initrds]) await fetchBlob(base + path, options, agents)
  await step('boot')
  options.onPhase?.(node, 'kernel')
  await pause(jitter(pace.kernel), undefined, { signal })
  const root = script.args.get('muster.sha256')
  if (root !== undefined) {
    await say('initrd')
    await say('fetch')
    await fetchBlob(`${base}/blob/${root}`, options, agents)
    await say('root')
  }
  options.onPhase?.(node, 'root')
  await pause(jitter(pace.agent), undefined, { signal })
  await say('agent')
  await say('ready')
  options.onPhase?.(node, 'ready')
  return { base, id, image }
}

async function beat(
  node: SimulatedNode,
  { base, id, image }: Booted,
  options: SimulationOptions,
  agents: Agents,
): Promise<void> {
  const body = JSON.stringify({
    boot: id,
    mac: node.mac,
    node: node.name,
    hostname: node.name,
    image,
    kernel: 'simulated',
    addresses: [],
    health: { status: 'ok', reason: '' },
  })
  for (let missed = 0; missed < 100;) {
    const answer = await request(`${base}/node/heartbeat`, {
      method: 'POST',
      body,
      agent: agents.kept,
      signal: options.signal,
    }).catch(() => undefined)
    options.signal.throwIfAborted()
    missed = answer === undefined ? missed + 1 : 0
    const said = Number(/^interval=(\d{1,4})$/m.exec(answer?.text ?? '')?.[1] ?? 10)
    await pause(jitter((options.interval ?? said) * 1000, 0.2), undefined, { signal: options.signal })
  }
}

async function fetchBlob(url: string, options: SimulationOptions, agents: Agents): Promise<void> {
  const method = options.fetch === 'whole' ? 'GET' : 'HEAD'
  const { sha256 } = await request(url, { method, agent: agents.fresh, signal: options.signal, hash: true })
  if (method === 'GET' && !url.endsWith(sha256)) throw new Error(`${url} has the wrong digest`)
}

interface Answer {
  readonly text: string
  readonly sha256: string
}

interface Asking {
  readonly method: string
  readonly body?: string | undefined
  readonly agent: Agent
  readonly signal: AbortSignal
  /** The body is hashed instead of kept. */
  readonly hash?: boolean
}

function request(url: string, { method, body, agent, signal, hash: isHashed }: Asking): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const sent = http.request(url, { method, agent, signal, headers }, response => {
      const hash = isHashed === true ? createHash('sha256') : undefined
      let text = ''
      response.on('data', (chunk: Buffer) => {
        if (hash === undefined) text += chunk.toString('utf8')
        else hash.update(chunk)
      })
      response.once('error', reject)
      response.once('end', () => {
        if ((response.statusCode ?? 500) >= 400)
          reject(new Error(`${url}: ${response.statusCode} ${text.split('\n')[0]}`))
        else resolve({ text, sha256: hash?.digest('hex') ?? '' })
      })
    })
    sent.setTimeout(60_000, () => sent.destroy(new Error(`${url}: no answer`)))
    sent.once('error', reject)
    sent.end(body)
  })
}

/** More or less: machines are never quite alike. */
const jitter = (milliseconds: number, share = 0.4): number => milliseconds * (1 + (Math.random() - 0.5) * 2 * share)
