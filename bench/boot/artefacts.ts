import { createHash, randomFillSync } from 'node:crypto'
import { mkdtemp, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Namespace } from '../../src/boot/dhcp/testing.ts'
import { type Figure, median, round } from '../figure.ts'
import { startNginx } from './nginx.ts'
import { LOAD_CORE, Pinned, SERVER_CORE, type Within } from './pinned.ts'
import type { DownloadSkills } from './programs/download.ts'
import type { FilesSkills } from './programs/files.ts'

const GIGABYTE = 1e9
/** As large as a root of a node. */
const SIZE = GIGABYTE
const ROUNDS = 9
/** How often the artefact is fetched in a round. */
const TIMES = 2
const MEGABYTE = 1e6
const CLIENTS = 200
/** What each of them fetches. */
const SHARED = 5 * MEGABYTE
/** Bits a second. */
const LINK = 1e9
const SHARE_ROUNDS = 3
/** What a kernel tells the time of a process in. */
const TICKS = 100
/** Memory that nobody else has to make room in, and that nginx sends from as it does from the page cache. */
const MEMORY = '/dev/shm/muster-bench-'

type Name = 'nginx' | 'memory' | 'file'
const NAMES: readonly Name[] = ['nginx', 'memory', 'file']

/** Artefacts, from memory and from the file, beside nginx that sends the same file: each server alone on one core. */
export async function* artefactFigures(): AsyncGenerator<Figure> {
  const dir = await mkdtemp(MEMORY)
  try {
    const sha256 = await artefact(dir, SIZE)
    yield* costFigures(dir, sha256)
    yield* shareFigures(dir)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function* costFigures(dir: string, sha256: string): AsyncGenerator<Figure> {
  await using servers = await startServers(dir, sha256)
  await using load = await Pinned.start<DownloadSkills>('download', LOAD_CORE)
  const costs: Record<Name, number[]> = { nginx: [], memory: [], file: [] }
  // In turns: what else the machine does hits all of them alike.
  for (let run = 0; run <= ROUNDS; run++) {
    for (const name of NAMES) {
      const { pid, url } = servers.all[name]
      const before = await cpuOf(pid)
      for (let time = 0; time < TIMES; time++) await load.ask('download', { url, size: SIZE, clients: 1 })
      // The first round fills caches.
      if (run > 0) costs[name].push(((await cpuOf(pid)) - before) / TIMES / (SIZE / GIGABYTE))
    }
  }
  yield figure('server CPU per GB, nginx with sendfile', median(costs.nginx))
  for (const name of ['memory', 'file'] as const) {
    const ratio = median(costs[name].map((cost, index) => cost / (costs.nginx[index] ?? Number.NaN)))
    yield figure(`server CPU per GB, ours from ${name}`, median(costs[name]), 'nginx, limit of the ratio 1.5', ratio)
  }
}

/**
 * Many clients at once on a link that is narrower than any server is fast: how long each needs, and what the one with the
 * least has when half of all is through. Much of that is TCP's doing, hence nginx beside it.
 */
async function* shareFigures(dir: string): AsyncGenerator<Figure> {
  const sha256 = await artefact(dir, SHARED)
  await using link = await Namespace.create()
  await link.ip('link set dev lo mtu 1500')
  await link.run('tc', `qdisc add dev lo root tbf rate ${LINK}bit burst 1mb limit 4mb`.split(' '))
  const within: Within = (command, args) => link.within(command, args)
  await using servers = await startServers(dir, sha256, within)
  await using load = await Pinned.start<DownloadSkills>('download', LOAD_CORE, within)
  const found: Record<Name, Record<keyof typeof SHARES, number>[]> = { nginx: [], memory: [], file: [] }
  for (let run = 0; run < SHARE_ROUNDS; run++) {
    for (const name of NAMES) {
      const { half, done } = await load.ask('download', { url: servers.all[name].url, size: SHARED, clients: CLIENTS })
      const times = done.toSorted((a, b) => a - b)
      found[name].push({
        least: Math.min(...half) / MEGABYTE,
        first: times[Math.floor(CLIENTS / 20)] ?? Number.NaN,
        last: times.at(-1) ?? Number.NaN,
      })
    }
  }
  for (const [key, { words, unit, ideal }] of Object.entries(SHARES) as [keyof typeof SHARES, Share][]) {
    for (const name of NAMES) {
      const value = median(found[name].map(shares => shares[key]))
      const who = name === 'nginx' ? 'nginx' : `ours from ${name}`
      yield {
        ...figure(
          `${CLIENTS} clients at once on a link of 1 Gbit/s, ${who}: ${words}`,
          value,
          'all alike',
          value / ideal,
        ),
        unit,
      }
    }
  }
}

interface Share {
  readonly words: string
  readonly unit: 's' | 'MB'
  /** If all went on alike. */
  readonly ideal: number
}

const ALIKE = (SHARED * CLIENTS * 8) / LINK
const SHARES = {
  least: { words: 'what the last has when half of all is through', unit: 'MB', ideal: SHARED / 2 / MEGABYTE },
  first: { words: 'until one in twenty has it all', unit: 's', ideal: ALIKE },
  last: { words: 'until everybody has it all', unit: 's', ideal: ALIKE },
} as const satisfies Record<string, Share>

interface Servers extends AsyncDisposable {
  readonly all: Readonly<Record<Name, { readonly pid: number; readonly url: string }>>
}

async function startServers(dir: string, sha256: string, within?: Within): Promise<Servers> {
  await using stack = new AsyncDisposableStack()
  const ours = async (budget: number) => {
    const server = stack.use(await Pinned.start<FilesSkills>('files', SERVER_CORE, within))
    return { pid: server.pid, url: await server.ask('start', { dir, sha256, budget }) }
  }
  const nginx = stack.use(await startNginx(dir, SERVER_CORE, within))
  const all = {
    nginx: { pid: nginx.pid, url: `${nginx.url}/${sha256}` },
    memory: await ours(4 * SIZE),
    file: await ours(0),
  }
  const kept = stack.move()
  return { all, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

const figure = (name: string, value: number, peer?: string, ratio?: number): Figure => ({
  bench: 'boot',
  case: name,
  value,
  unit: 's',
  ...(peer !== undefined && ratio !== undefined && { peer, ratio: round(ratio) }),
})

/** A file of noise, named by its digest. */
async function artefact(dir: string, size: number): Promise<string> {
  const chunk = Buffer.allocUnsafe(MEGABYTE)
  const hash = createHash('sha256')
  const file = join(dir, 'new')
  await using handle = await open(file, 'w')
  for (let at = 0; at < size; at += chunk.length) {
    hash.update(randomFillSync(chunk))
    await handle.write(chunk)
  }
  const sha256 = hash.digest('hex')
  await rename(file, join(dir, sha256))
  return sha256
}

/** Seconds of processor time of all threads of a process. */
async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}
