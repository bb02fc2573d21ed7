/** The agent as nodes run it, against boot servers as they are. */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../control/testing.ts'
import { exec } from '../lib/exec.ts'
import type { Sighting } from '../nodes/reports.ts'
import { Artefacts } from './artefacts.ts'
import { createBootHttp } from './http.ts'
import { COMPUTE, MAC, indexOf } from './testing.ts'

const AGENT = join(import.meta.dirname, '../../node/modules/muster-agent/muster-agent')
const BOOT = '0123456789abcdef'
const PATIENCE = 120_000

interface BootServer {
  readonly server: Server
  readonly url: string
  readonly told: Sighting[]
  heard: number
  connections: number
}

let root: string
let servers: BootServer[]
let stop: AbortController

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'muster-agent-'))
  stop = new AbortController()
  servers = [await startServer(), await startServer()]
  const files = {
    'run/muster/boot': plan(servers.map(({ url }) => url)),
    'proc/uptime': '12.50 20.00\n',
    'proc/sys/kernel/hostname': 'n1\n',
    'proc/sys/kernel/osrelease': '6.1.0-30-amd64\n',
    'proc/sys/kernel/random/boot_id': '1d9bb1c8-2f0e-4b6e-9d57-0a4d3a2c8a10\n',
    'etc/image-release': 'IMAGE_NAME=compute\n',
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(root, path, '..'), { recursive: true })
    await writeFile(join(root, path), content)
  }
})
afterEach(async () => {
  stop.abort()
  for (const { server } of servers) end(server)
  await rm(root, { recursive: true, force: true })
})

const plan = (urls: readonly string[]): string =>
  `muster.node=n1\nmuster.boot=${BOOT}\nmuster.mac=${MAC}\nmuster.servers=${urls.join(',')}\nmuster.image=${COMPUTE.digest}\n`

async function startServer(port = 0): Promise<BootServer> {
  const logger = pino({ level: 'silent' })
  const told: Sighting[] = []
  const server = createBootHttp({
    logger,
    artefacts: new Artefacts({ pathOf: sha256 => join(root, sha256) }, { logger, budget: 1e6 }),
    index: () => indexOf(),
    servers: asked => [asked],
    tell: sighting => void told.push(sighting),
    heard: () => void started.heard++,
    loader: async () => undefined,
    discoveryExtras: () => undefined,
    interval: 2,
  })
  server.on('connection', () => void started.connections++)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const started: BootServer = { server, url, told, heard: 0, connections: 0 }
  return started
}

function end(server: Server): void {
  server.close()
  server.closeAllConnections()
}

const run = (shell: readonly [string, ...string[]]): Promise<unknown> =>
  exec(shell[0], [...shell.slice(1), AGENT], {
    env: { MUSTER_ROOT: root },
    signal: stop.signal,
    timeout: 0,
    group: true,
  }).catch(() => {})

describe.for([['dash'], ['busybox', 'sh']] as const)('under %s', shell => {
  it('says that it is ready, and then that it is there: over one connection, and to the next server when one has gone', async () => {
    const running = run(shell)
    const [first, second] = servers as [BootServer, BootServer]
    await until('two heartbeats', () => first.heard >= 2, PATIENCE)
    // For two phases one each, and one for all heartbeats.
    expect(first.connections).toBe(3)
    expect(first.told.map(seen => (seen.kind === 'phase' ? seen.phase : seen.kind))).toEqual([
      'agent',
      'ready',
      'status',
      'status',
    ])
    expect(first.told.at(-1)).toMatchObject({
      node: 'n1',
      boot: BOOT,
      image: COMPUTE.digest,
      kernel: '6.1.0-30-amd64',
      hostname: 'n1',
      health: { status: 'ok', reason: '' },
    })
    end(first.server)
    await until('a heartbeat to the other', () => second.heard >= 1, PATIENCE)
    await mkdir(join(root, 'etc/muster/health.d'), { recursive: true })
    await writeFile(join(root, 'etc/muster/health.d/hot'), '#!/bin/sh\necho 90 degrees\nexit 3\n', { mode: 0o755 })
    await until('what has changed', () => second.told.some(isDegraded), PATIENCE)
    stop.abort()
    await running
    // curl ends with it.
    await until('the end of its connection', async () => (await connections(second.server)) === 0, PATIENCE)
  })
})

const isDegraded = (seen: Sighting): boolean =>
  seen.kind === 'status' && seen.health.status === 'degraded' && seen.health.reason === 'hot: 90 degrees'

const connections = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))))
