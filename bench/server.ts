import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
// oxlint-disable-next-line no-restricted-imports -- a server that goes on running while it is measured
import { type ChildProcess, spawn } from 'node:child_process'
import { ApiClient } from '../src/api/client.ts'
import type { AppliedReply } from '../src/api/schemas.ts'
import { exec } from '../src/lib/exec.ts'
import { type Bench, against, median, seconds } from './figure.ts'
import { MUSTER, benchRepository, commitAll, temporaryDir } from './world.ts'

const SIZES = [5000, 20_000, 100_000]

/** A server with all those nodes applied: how it starts, rests, lists and takes a change. */
export const serverBench: Bench = async function* () {
  for (const nodes of SIZES) {
    const limit = (value: number, most: number) => (nodes === 20_000 ? against(most, value) : {})
    await using dir = await temporaryDir()
    const site = join(dir.path, 'site')
    await benchRepository(site, nodes)
    const args = [
      'serve',
      '--site',
      site,
      '--data',
      join(dir.path, 'data'),
      '--listen',
      '127.0.0.1:0',
      '--log-level',
      'error',
    ]
    const client = new ApiClient({ server: join(dir.path, 'data/muster.sock') })

    const first = await start(args, client)
    const began = performance.now()
    await client.send('POST', '/api/v1/site/apply', {})
    yield {
      bench: 'server',
      case: `first apply of ${nodes} nodes`,
      value: (performance.now() - began) / 1000,
      unit: 's',
    }
    const change = await changeOfOneGroup(site, client)
    yield {
      bench: 'server',
      case: `apply a change of one group of ${nodes} nodes until a watcher has it`,
      value: change,
      unit: 's',
      ...limit(change, 0.5),
    }
    await stop(first)

    const restarting = performance.now()
    const second = await start(args, client)
    const ready = (performance.now() - restarting) / 1000
    yield {
      bench: 'server',
      case: `restart with ${nodes} nodes until ready`,
      value: ready,
      unit: 's',
      ...limit(ready, 3),
    }
    const list = await seconds(3, () =>
      exec(MUSTER, ['node', 'ls'], { env: { MUSTER_SERVER: join(dir.path, 'data/muster.sock') } }),
    )
    yield { bench: 'server', case: `muster node ls of ${nodes} nodes`, value: list, unit: 's', ...limit(list, 1) }
    const rest = await residentMegabytes(second)
    yield {
      bench: 'server',
      case: `memory with ${nodes} nodes, after listing them`,
      value: rest,
      unit: 'MB',
      ...limit(rest, 300),
    }
    await changeOfOneGroup(site, client)
    // At rest is when the server has given back what it needed for the change.
    await new Promise(resolve => setTimeout(resolve, 8000))
    const worked = await residentMegabytes(second)
    yield {
      bench: 'server',
      case: `memory with ${nodes} nodes, at rest after applies`,
      value: worked,
      unit: 'MB',
      ...limit(worked, 300),
    }
    await stop(second)
  }
}

async function start(args: readonly string[], client: ApiClient): Promise<ChildProcess> {
  const server = spawn(MUSTER, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  for (;;) {
    const ready = await client.get('/readyz').then(
      () => true,
      () => false,
    )
    if (ready) return server
    if (server.exitCode !== null) throw new Error('the server did not start')
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

function stop(server: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    server.once('exit', () => resolve())
    server.kill('SIGTERM')
  })
}

/** From the request to apply until the event has reached a client that watches. */
async function changeOfOneGroup(site: string, client: ApiClient): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < 4; round++) {
    const file = join(site, 'groups/rack7.yaml')
    await writeFile(file, (await readFile(file, 'utf8')).replace(/cooling: \w+/, `cooling: water${Date.now()}`))
    await commitAll(site, 'change')
    const { revision } = await client.get<{ revision: number }>('/api/v1/status')
    const events = client.events({ after: revision, kind: 'site.applied' })
    const arrived = events.next()
    const began = performance.now()
    await client.send<AppliedReply>('POST', '/api/v1/site/apply', {})
    await arrived
    times.push((performance.now() - began) / 1000)
    await events.return(undefined)
  }
  return median(times)
}

async function residentMegabytes(server: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1000
}
