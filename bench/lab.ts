import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiClient } from '../src/api/client.ts'
import type { BootReply, TimelineReply } from '../src/api/schemas.ts'
import { exec } from '../src/lib/exec.ts'
import type { Phase } from '../src/nodes/phases.ts'
import { type Bench, type Figure, against } from './figure.ts'
import { MUSTER, makeRepository, temporaryDir } from './world.ts'

const SITE = new URL('../examples/site', import.meta.url).pathname
/** Of the time from the start of the kernel to ready, what our initramfs may take. */
const MOST = 0.25
const BOOTS = 3
/** The first one that `lab up` starts. */
const NODE = 'n001'

/** What happens while the kernel and the real system start, and what our initramfs adds to that. */
const OURS: readonly Phase[] = ['initrd', 'fetch']
const KERNEL_ON: readonly Phase[] = ['kernel', ...OURS, 'root', 'agent']

/** Virtual machines that boot the example's compute image, as `npm start` shows it: the time of each phase. */
export const labBench: Bench = async function* () {
  await using dir = await temporaryDir()
  // A copy: builds write locks into it.
  const site = join(dir.path, 'site')
  await cp(SITE, site, { recursive: true })
  await makeRepository(site)
  const lab = (...words: string[]): Promise<unknown> =>
    exec(MUSTER, ['lab', ...words, '--dir', dir.path], { timeout: 0, env: { MUSTER_SITE: site } })
  const client = new ApiClient({ server: join(dir.path, 'data', 'muster.sock') })
  try {
    await lab('up', '--nodes', '1', '--port', '0')
    let before: BootReply | undefined
    for (let count = 1; ; count++) {
      before = await readyBoot(client, before)
      yield* figuresOf(before, count)
      if (count === BOOTS) return
      await lab('power', NODE, 'cycle')
    }
  } finally {
    await lab('down')
  }
}

async function readyBoot(client: ApiClient, before: BootReply | undefined): Promise<BootReply> {
  for (;;) {
    const { boots } = await client.get<TimelineReply>(`/api/v1/nodes/${NODE}/timeline`)
    const ready = boots.find(boot => boot.id !== before?.id && boot.phases.at(-1)?.phase === 'ready')
    if (ready !== undefined) return ready
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

function* figuresOf({ phases }: BootReply, count: number): Generator<Figure> {
  const seconds = new Map(phases.flatMap(({ phase, seconds: time }) => (time === undefined ? [] : [[phase, time]])))
  const sum = (names: readonly Phase[]): number => names.reduce((total, name) => total + (seconds.get(name) ?? 0), 0)
  const words = [...seconds].map(([phase, time]) => `${phase} ${time.toFixed(1)}`).join(', ')
  const [ours, all] = [sum(OURS), sum(KERNEL_ON)]
  yield {
    bench: 'lab',
    case: `boot ${count}, from the kernel to ready (${words})`,
    value: all,
    unit: 's',
  }
  yield {
    bench: 'lab',
    case: `boot ${count}, in our initramfs`,
    value: ours,
    unit: 's',
    peer: `limit ${MOST} of the time from the kernel to ready`,
    ratio: against(MOST * all, ours).ratio,
  }
}
