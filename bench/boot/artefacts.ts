import { createHash, randomFillSync } from 'node:crypto'
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Figure, against, median, round } from '../figure.ts'
import { startNginx } from './nginx.ts'
import { LOAD_CORE, Pinned, SERVER_CORE } from './pinned.ts'
import type { DownloadSkills } from './programs/download.ts'
import type { FilesSkills } from './programs/files.ts'

const GIGABYTE = 1e9
/** As large as a root of a node. */
const SIZE = GIGABYTE
const ROUNDS = 5
/** How often the artefact is fetched in a round. */
const TIMES = 3
const CLIENTS = 200
/** What a kernel knows of the time a process took. */
const TICKS = 100

/** Artefacts beside nginx, which sends the same file from the page cache; each server alone on one core, in turns. */
export async function* artefactFigures(): AsyncGenerator<Figure> {
  const dir = await mkdtemp('/dev/shm/muster-bench-')
  try {
    const sha256 = await artefact(dir)
    await using load = await Pinned.start<DownloadSkills>('download', LOAD_CORE)
    await using memory = await Pinned.start<FilesSkills>('files', SERVER_CORE)
    await using file = await Pinned.start<FilesSkills>('files', SERVER_CORE)
    await using nginx = await startNginx(dir, dir, SERVER_CORE)
    const servers = {
      memory: { pid: memory.pid, url: await memory.ask('start', { dir, sha256, budget: 4 * SIZE }) },
      file: { pid: file.pid, url: await file.ask('start', { dir, sha256, budget: 0 }) },
      nginx: { pid: nginx.pid, url: `${nginx.url}/${sha256}` },
    }
    const costs = { memory: [] as number[], file: [] as number[], nginx: [] as number[] }
    for (let run = 0; run <= ROUNDS; run++) {
      for (const name of ['nginx', 'memory', 'file'] as const) {
        const { pid, url } = servers[name]
        const before = await cpuOf(pid)
        for (let time = 0; time < TIMES; time++) await load.ask('download', { url, clients: 1, until: SIZE })
        const used = (await cpuOf(pid)) - before
        // The first fills caches.
        if (run > 0) costs[name].push(used / TIMES / (SIZE / GIGABYTE))
      }
    }
    const peer = median(costs.nginx)
    yield figure('server CPU per GB, nginx sendfile', peer)
    for (const name of ['memory', 'file'] as const) {
      const cost = median(costs[name])
      yield figure(`server CPU per GB, from ${name} (limit: 1.5 times nginx)`, cost, 'nginx', cost / peer)
    }
    for (const name of ['nginx', 'memory', 'file'] as const) {

      const { bytes, seconds } = await load.ask('download', {
        url: servers[name].url,
        clients: CLIENTS,
        until: 10 * GIGABYTE,
      })
      const sorted = bytes.toSorted((a, b) => a - b)
      const [least = 0, most = 0] = [sorted[0], sorted.at(-1)]
      console.log(name, seconds, least / 1e6, median(bytes) / 1e6, most / 1e6)
    }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

const figure = (name: string, value: number, peer?: string, ratio?: number): Figure => ({
  bench: 'boot',
  case: name,
  value,
  unit: 's',
  ...(peer !== undefined && ratio !== undefined && { peer, ratio: round(ratio) }),
})

/** A file of noise, named by its digest. */
async function artefact(dir: string): Promise<string> {
  const chunk = Buffer.allocUnsafe(10e6)
  const hash = createHash('sha256')
  const file = join(dir, 'new')
  await using handle: FileHandle = await open(file, 'w')
  for (let at = 0; at < SIZE; at += chunk.length) {
    randomFillSync(chunk)
    hash.update(chunk)
    await handle.write(chunk)
  }
  const sha256 = hash.digest('hex')
  const { rename } = await import('node:fs/promises')
  await rename(file, join(dir, sha256))
  return sha256
}

/** Seconds of processor time of all threads of a process. */
async function cpuOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}
