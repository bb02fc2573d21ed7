/** A lab as a user has it: `bin/muster lab up`, on a small site of its own. Images are built once for all tests. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ApiClient } from '../../src/api/client.ts'
import type { BootReply, MachineReply, NodeItem, TimelineReply } from '../../src/api/schemas.ts'
import { type Lab, openLab } from '../../src/lab/lab.ts'
import { exec } from '../../src/lib/exec.ts'
import { startProgram } from '../../src/lib/program.ts'
import { type Ran, type RunOptions, muster } from '../cli/testing.ts'

const MINUTE = 60_000
/** Far longer than any boot takes; a machine that is there by then is not stuck. */
const LIMIT = 15 * MINUTE

export interface Cluster extends AsyncDisposable {
  readonly dir: string
  readonly site: string
  readonly data: string
  readonly lab: Lab
  readonly client: ApiClient
  muster(words: string, options?: Pick<RunOptions, 'env' | 'input'>): Promise<Ran>
  up(options: string, env?: Readonly<Record<string, string>>): Promise<Ran>
  down(): Promise<void>
  /** The newest boot of a node, once `isSo`. */
  boot(node: string, isSo: (boot: BootReply) => boolean): Promise<BootReply>
  /** A boot that is none of those before, and is ready. */
  ready(node: string, before?: BootReply): Promise<BootReply>
  node(name: string): Promise<NodeItem>
  console(node: string): Promise<string>
  /** Asks until it is so. */
  until<Value>(what: string, ask: () => Promise<Value | undefined>): Promise<Value>
}

export async function makeCluster(): Promise<Cluster> {
  // Named by whoever writes tests: then images stay from run to run.
  const kept = process.env['MUSTER_E2E_DIR']
  const dir = kept ?? (await mkdtemp(join(tmpdir(), 'muster-e2e-')))
  await rm(join(dir, 'site'), { recursive: true, force: true })
  const site = join(dir, 'site')
  const data = join(dir, 'lab/data')
  await cp(fileURLToPath(new URL('site', import.meta.url)), site, { recursive: true })
  await commit(site, 'The site of the tests', true)
  const lab = await openLab(join(dir, 'lab'))
  await lab.down()
  for (const name of ['state.db', 'state.db.lock']) await rm(join(data, name), { force: true })
  const client = new ApiClient({ server: join(data, 'muster.sock') })
  const env = { MUSTER_LAB: join(dir, 'lab'), MUSTER_SERVER: join(data, 'muster.sock') }
  const run: Cluster['muster'] = (words, options = {}) =>
    muster(words, { timeout: 2 * LIMIT, ...options, env: { ...env, ...options.env } })

  const until: Cluster['until'] = async (what, ask) => {
    for (const end = Date.now() + LIMIT; ;) {
      const value = await ask().catch(() => undefined)
      if (value !== undefined) return value
      if (Date.now() > end) throw new Error(`it never came to: ${what}\n${await lastWords(lab)}`)
      await pause(250)
    }
  }
  const boot: Cluster['boot'] = (node, isSo) =>
    until(`a boot of ${node} that is as expected`, async () => {
      const { boots } = await client.get<TimelineReply>(`/api/v1/nodes/${node}/timeline`)
      return boots.find(isSo)
    })
  return {
    dir,
    site,
    data,
    lab,
    client,
    until,
    boot,
    muster: run,
    up: async (options, more = {}) => {
      await lab.down()
      return run(`lab up --site ${site} --port 0 --json ${options}`, { env: more })
    },
    down: async () => void (await lab.down()),
    ready: (node, before) => boot(node, found => found.id !== before?.id && found.phases.at(-1)?.phase === 'ready'),
    node: async name => {
      const { items } = await client.get<{ items: NodeItem[] }>('/api/v1/nodes', { nodes: name })
      if (items[0] === undefined) throw new Error(`${name} is not there`)
      return items[0]
    },
    console: async node => readFile(join(lab.dir, 'nodes', node, 'console.log'), 'latin1'),
    async [Symbol.asyncDispose]() {
      await lab.down()
      if (kept === undefined) await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Why a test waits in vain is mostly there. */
async function lastWords(lab: Lab): Promise<string> {
  const { nodes } = await lab.status()
  const logs = nodes.map(async ({ name, consoleLog }) => {
    const text = await readFile(consoleLog, 'latin1').catch(() => '')
    return `--- console of ${name}:\n${text.slice(-2000)}`
  })
  return [
    ...(await Promise.all(logs)),
    `--- server:\n${(await readFile(join(lab.dir, 'serve.log'), 'utf8').catch(() => '')).slice(-2000)}`,
  ].join('\n')
}

export async function commit(site: string, message: string, isFirst = false): Promise<void> {
  const git = (...words: string[]): Promise<unknown> =>
    exec('git', ['-C', site, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...words])
  if (isFirst) await git('init', '--quiet', '--initial-branch=main')
  await git('add', '.')
  await git('commit', '--quiet', '--allow-empty', '--message', message)
}

/** The switch of the lab says on a port what it is, as real ones do: with LLDP. It may call the port otherwise. */
export async function talkingSwitch(lab: Lab, name: string, port: string, called = port): Promise<AsyncDisposable> {
  // Where its own user, too, finds them.
  const socket = join(tmpdir(), `muster-lldpd-${process.pid}-${port}.sock`)
  const settings = join(tmpdir(), `muster-lldpd-${process.pid}-${port}.conf`)
  // Read before it says its first word, which would name this machine otherwise.
  await writeFile(
    settings,
    `configure system hostname ${name}\nconfigure ports ${port} lldp portidsubtype local ${called}\nconfigure lldp tx-interval 2\n`,
  )
  const daemon = ['lldpd', '-d', '-u', socket, '-O', settings, '-I', port]
  const program = await startProgram('ip', ['netns', 'exec', lab.names.switch, ...daemon])
  return {
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]()
      await Promise.all([socket, settings].map(path => rm(path, { force: true })))
    },
  }
}

export const phasesOf = (boot: BootReply): string[] => boot.phases.map(({ phase }) => phase)

export type { MachineReply }
