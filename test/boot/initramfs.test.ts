import { createHash } from 'node:crypto'
import { readFile, rm, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildInitramfs } from '../../src/boot/initramfs/build.ts'
import { findBusybox } from '../../src/boot/initramfs/busybox.ts'
import { SCRIPTS } from '../../src/boot/initramfs/scripts.ts'
import { mergeLayers } from '../../src/images/layers/merge.ts'
import { scanLayer } from '../../src/images/layers/scan.ts'
import { treeOf } from '../../src/lib/pack/testing.ts'
import { writeSquashfs } from '../../src/lib/squashfs/write.ts'
import {
  type Home,
  MAC,
  MINUTES,
  boot as bootWith,
  home as homeWith,
  stockKernel,
  stopAll,
  tinyRoot,
} from './machine.ts'

let dir: string
let kernel: { readonly version: string; readonly file: string }
let root: Buffer
let sha256: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-boot-'))
  const stock = await stockKernel(dir)
  kernel = stock
  const layer = join(dir, 'kernel')
  const tree = mergeLayers([{ ...(await scanLayer(layer, 0)), root: layer }])
  const busybox = await findBusybox('amd64')
  const options = {
    tree,
    kernel: stock.version,
    arch: 'amd64',
    extraModules: [],
    keys: [],
    busybox,
    scripts: SCRIPTS,
  } as const
  await writeFile(join(dir, 'initrd'), await buildInitramfs(options))
  await writeSquashfs(treeOf(await tinyRoot(busybox), join(dir, 'contents')), join(dir, 'root'), { time: 0 })
  root = await readFile(join(dir, 'root'))
  sha256 = createHash('sha256').update(root).digest('hex')
}, 10 * MINUTES)

afterAll(async () => {
  await stopAll()
  await rm(dir, { recursive: true })
})

const home = (...answers: ('right' | 'breaks' | 'wrong')[]): Promise<Home> =>
  homeWith(new Map([[sha256, root]]), ...answers)
const boot = (words: string): ReturnType<typeof bootWith> => bootWith(kernel.file, join(dir, 'initrd'), words)

const plan = (servers: string): string =>
  [
    `muster.node=n001 muster.boot=0123456789abcdef muster.mac=${MAC} muster.servers=${servers} muster.image=sha256:${sha256}`,
    `muster.root=squashfs muster.sha256=${sha256} muster.size=${root.length} muster.overlay=30% muster.kernel=${kernel.version}`,
  ].join(' ')

test(
  'a bare kernel gets to its root: from the second server, as the first is not there',
  async () => {
    await using server = await home('right')
    // Nobody listens on port 9.
    await using machine = await boot(`single ${plan(`http://10.0.2.2:9,${server.url}`)}`)
    await machine.line(/^root: end$/)
    const said = machine.console.filter(line => line.startsWith('root: '))
    expect(said).toEqual([
      'root: init was given single',
      'root: host n001, file n001',
      'root: plan muster.node=n001',
      'root: plan muster.boot=0123456789abcdef',
      `root: plan muster.mac=${MAC}`,
      `root: plan muster.servers=http://10.0.2.2:9,${server.url}`,
      `root: plan muster.image=sha256:${sha256}`,
      'root: plan muster.root=squashfs',
      `root: plan muster.sha256=${sha256}`,
      `root: plan muster.size=${root.length}`,
      'root: plan muster.overlay=30%',
      `root: plan muster.kernel=${kernel.version}`,
      'root: mount /proc proc',
      'root: mount /sys sysfs',
      'root: mount /dev devtmpfs',
      'root: mount /run tmpfs',
      'root: mount / overlay',
      'root: takes changes',
      // The network is left as it was found, for the system to set up as it likes; only the loopback has an address.
      'root: up 1 panic 0',
      'root: end',
    ])
    expect(server.reports.map(({ ago, ...rest }) => [rest, typeof ago])).toEqual(
      ['initrd', 'fetch', 'root'].map(phase => [
        { path: '/node/report', boot: '0123456789abcdef', mac: MAC, phase },
        'number',
      ]),
    )
    for (const stage of ['plan', 'modules', 'network', 'fetch', 'root'])
      expect(machine.console.join('\n')).toMatch(
        new RegExp(`^\\[\\d+\\.\\d\\d\\] ${stage}: done in \\d+\\.\\d\\d s$`, 'm'),
      )
  },
  10 * MINUTES,
)

test(
  'wrong bytes are never run: it says so, tries again, and goes on by itself when the server is well',
  async () => {
    await using server = await home('breaks', 'wrong', 'wrong', 'wrong')
    await using machine = await boot(plan(server.url))
    const failure = await machine.line(/FAILED: /)
    expect(failure).toMatch(
      /FAILED: http:\S+ sent other bytes than those of the image: sha256 [0-9a-f]{64} instead of [0-9a-f]{64}; is the boot/,
    )
    expect(machine.console.some(line => line.startsWith('root: '))).toBe(false)
    await machine.line(/attempt 2 follows in \d+\.\d\d s/)
    const [blob, reason] = [`/blob/${sha256}`, server.reports.at(-1)]
    expect(reason).toMatchObject({ phase: 'failed', boot: '0123456789abcdef', mac: MAC })
    expect(reason?.['detail']).toContain('sent other bytes than those of the image')
    expect(server.requests).toEqual([
      `GET ${blob} all breaks`,
      `GET ${blob} on wrong`,
      `GET ${blob} all wrong`,
      `GET ${blob} all wrong`,
    ])
    server.answers[0] = 'right'
    await machine.line(/^root: end$/)
    expect(server.reports.at(-1)).toMatchObject({ phase: 'root' })
  },
  10 * MINUTES,
)

test(
  'a machine nobody knows says what it is, is adopted, and goes on as that node',
  async () => {
    await using server = await home('right')
    await using machine = await boot(
      `muster.mode=discover muster.boot=aaaaaaaaaaaaaaaa muster.mac=${MAC} muster.servers=${server.url}`,
    )
    await machine.line(/discover: this machine is m-1$/)
    expect(server.reports[0]).toMatchObject({
      path: '/discover',
      boot: 'aaaaaaaaaaaaaaaa',
      mac: MAC,
      macs: [{ name: 'eth0', mac: MAC, link: true }],
      vendor: 'QEMU',
      cpu: { count: 2 },
    })
    server.next.push(plan(server.url).replaceAll(' ', '\n').replace('n001', 'n017'))
    await machine.line(/^root: end$/)
    expect(machine.console).toContain('root: host n017, file n017')
    expect(server.reports.slice(-3).map(({ phase, boot }) => `${phase} ${boot}`)).toEqual([
      'initrd 0123456789abcdef',
      'fetch 0123456789abcdef',
      'root 0123456789abcdef',
    ])
  },
  10 * MINUTES,
)
