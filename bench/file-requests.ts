// oxlint-disable-next-line no-restricted-imports -- a server that goes on running while it is measured
import { type ChildProcess, spawn } from 'node:child_process'
import { createSecretKey } from 'node:crypto'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ApiClient } from '../src/api/client.ts'
import { makeBootId } from '../src/boot/boot-ids.ts'
import { signCredential } from '../src/boot/credentials.ts'
import { Authority } from '../src/ca/authority.ts'
import { LOAD_CORE, Pinned, SERVER_CORE } from './boot/pinned.ts'
import type { AskResult, AskSkills } from './boot/programs/askers.ts'
import { type Figure, against } from './figure.ts'
import { MUSTER, commitAll, makeRepository, temporaryDir } from './world.ts'

/** A second, for so many. */
const REQUESTS = 5000
const CONNECTIONS = 64
const MEASURED = 5000
/** The lists of all nodes are made, and every node has asked for its own. */
const WARM = 20_000
const HOUR = 3600
/** Of the boot server; that for files is the next. */
const PORT = 7980
const URL_OF_NODES = `https://127.0.0.1:${PORT + 1}`

export interface FilesSite {
  readonly nodes: number
  readonly write: (dir: string) => Promise<void>
  readonly nodeOf: (number: number) => { readonly name: string; readonly mac: string }
  /** A file that every node gets. */
  readonly everybodys: string
}

/**
 * Nodes ask over TLS connections that they keep whether their files are still the same; one whole server on one core, at rest and in
 * the seconds after a change that touches every node.
 */
export async function* requestFigures(site: FilesSite): AsyncGenerator<Figure> {
  await using dir = await temporaryDir()
  const [repository, data] = [join(dir.path, 'site'), join(dir.path, 'data')]
  await site.write(repository)
  await makeRepository(repository)
  const authority = await Authority.open(join(data, 'ca'))
  const credentials = await letIn(data, authority, site)
  const client = new ApiClient({ server: join(data, 'muster.sock') })
  await using _ = await serve(repository, data, client)
  await client.send('POST', '/api/v1/site/apply', {})
  await using load = await Pinned.start<AskSkills>('askers', LOAD_CORE)
  await load.ask('start', { url: URL_OF_NODES, ca: authority.pem, credentials, connections: CONNECTIONS })
  await pause(WARM)
  await load.ask('result')
  await pause(MEASURED)
  yield figure('at rest', await load.ask('result'))
  await appendFile(join(repository, site.everybodys), '# changed\n')
  await commitAll(repository, 'change')
  await client.send('POST', '/api/v1/site/apply', {})
  await load.ask('result')
  await pause(MEASURED)
  yield figure(`in the ${MEASURED / 1000} s after a change for every node`, await load.ask('result'))
}

function figure(when: string, { asked, fresh, failed, p99 }: AskResult): Figure {
  const value = (MEASURED / 1000 / asked) * REQUESTS
  const counts = `${fresh} of ${asked} new lists, ${failed} failed, p99 ${p99.toFixed(1)} ms`
  return {
    bench: 'files',
    case: `${REQUESTS} conditional requests on one core ${when} (${counts})`,
    value,
    unit: 's',
    ...against(1, value),
  }
}

/** As if all of them had booted just now: what is measured comes after that. */
async function letIn(data: string, authority: Authority, { nodes, nodeOf }: FilesSite): Promise<string[]> {
  const key = createSecretKey(authority.nodeKey)
  const now = Math.floor(Date.now() / 1000)
  const all = Array.from({ length: nodes }, (_, index) => {
    const { name, mac } = nodeOf(index + 1)
    return { node: name, mac, boot: makeBootId(key, name, mac, now) }
  })
  await mkdir(join(data, 'boot'), { recursive: true, mode: 0o700 })
  const lines = all.map(({ node, boot }) => JSON.stringify({ node, granted: { boot, claim: '0'.repeat(64), at: now } }))
  await writeFile(join(data, 'boot', 'enrolments.jsonl'), `${lines.join('\n')}\n`, { mode: 0o600 })
  return all.map(one => signCredential(key, { ...one, expires: now + HOUR }))
}

async function serve(site: string, data: string, client: ApiClient): Promise<AsyncDisposable> {
  const words = [
    'serve',
    '--site',
    site,
    '--data',
    data,
    '--listen',
    '127.0.0.1:0',
    '--boot-listen',
    `127.0.0.1:${PORT}`,
  ]
  const pinned = ['--cpu-list', `${SERVER_CORE}`, MUSTER, ...words, '--log-level', 'error']
  const server: ChildProcess = spawn('taskset', pinned, { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise<void>(resolve => server.once('exit', () => resolve()))
  const isReady = (): Promise<boolean> =>
    client.get('/readyz').then(
      () => true,
      () => false,
    )
  while (!(await isReady())) {
    if (server.exitCode !== null) throw new Error('the server did not start')
    await pause(50)
  }
  return {
    async [Symbol.asyncDispose]() {
      server.kill('SIGTERM')
      await ended
    },
  }
}
