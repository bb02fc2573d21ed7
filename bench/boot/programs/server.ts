import { mkdir, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { pino } from 'pino'
import { ViewIndex } from '../../../src/boot/index-view.ts'
import { BootService } from '../../../src/boot/service.ts'
import { Recorder } from '../../../src/nodes/recorder.ts'
import { openSqliteStore } from '../../../src/state/sqlite.ts'
import type { Event, Store } from '../../../src/state/store.ts'
import { answerWith, cpuSeconds } from '../skills.ts'
import { TINY, benchView } from '../world.ts'

export interface ServerStart {
  /** Where blobs are expected and state is kept. */
  readonly dir: string
  readonly nodes: number
  /** `boot`: as on a boot server of its own, whoever records is elsewhere. `all`: recorded here, in SQLite. */
  readonly role: 'boot' | 'all'
}

export interface ServerUsage {
  readonly cpu: number
  readonly commits: number
  readonly megabytes: number
}

/** A boot server as `muster serve` wires it, that says what it costs. */
const running = new AsyncDisposableStack()
let commits = 0
let opened: Store | undefined

async function start({ dir, nodes, role }: ServerStart): Promise<string> {
  const logger = pino({ level: 'error' })
  const index = new ViewIndex(benchView(nodes))
  await mkdir(join(dir, 'blobs'), { recursive: true })
  const pathOf = (sha256: string): string => join(dir, 'blobs', sha256)
  for (const content of TINY) await writeFile(pathOf(createHash('sha256').update(content).digest('hex')), content)
  const recorder = role === 'all' ? await record(dir, index) : undefined
  const service = running.use(
    await BootService.start({
      dir: join(dir, 'boot'),
      logger,
      blobs: { pathOf },
      send: async batch => recorder?.take(batch),
      listen: { host: '127.0.0.1', port: 0 },
    }),
  )
  service.update(index)
  await service.settled()
  return service.urls()[0] ?? ''
}

async function record(dir: string, index: ViewIndex): Promise<Recorder> {
  const store = running.use(await openSqliteStore(join(dir, 'state.db')))
  opened = store
  const commit = store.commit.bind(store)
  store.commit = (...all) => {
    commits++
    return commit(...all)
  }
  const recorder = await Recorder.load(store, { isNode: name => index.node(name) !== undefined })
  const sweeping = setInterval(() => void recorder.sweep(), 1000)
  running.defer(() => clearInterval(sweeping))
  return recorder
}

const skills = {
  start,
  usage: (): ServerUsage => ({ cpu: cpuSeconds(), commits, megabytes: process.memoryUsage.rss() / 1e6 }),
  /** All events of that kind so far. */
  events: async (kind: string): Promise<readonly Event[]> => (await opened?.events({ kind })) ?? [],
}
export type ServerSkills = typeof skills
answerWith(skills, () => running.disposeAsync())
