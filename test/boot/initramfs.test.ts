import { createHash } from 'node:crypto'
import { readFile, readdir, rm, mkdtemp, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildInitramfs } from '../../src/boot/initramfs/build.ts'
import { findBusybox } from '../../src/boot/initramfs/busybox.ts'
import { SCRIPTS } from '../../src/boot/initramfs/scripts.ts'
import { mergeLayers } from '../../src/images/layers/merge.ts'
import { scanLayer } from '../../src/images/layers/scan.ts'
import { exec } from '../../src/lib/exec.ts'
import { type Item, noise, treeOf } from '../../src/lib/pack/testing.ts'
import { type Program, startProgram } from '../../src/lib/program.ts'
import { writeSquashfs } from '../../src/lib/squashfs/write.ts'

const MINUTES = 60_000
let dir: string
let kernel: { readonly version: string; readonly file: string }
let root: Buffer
let sha256: string
const running = new Set<Program>()

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-boot-'))
  const stock = await stockKernel(join(dir, 'kernel'))
  kernel = stock
  const layer = join(dir, 'kernel')
  const tree = mergeLayers([{ ...(await scanLayer(layer, 0)), root: layer }])
  const busybox = await findBusybox('amd64')
  const options = { tree, kernel: stock.version, arch: 'amd64', extraModules: [], busybox, scripts: SCRIPTS } as const
  await writeFile(join(dir, 'initrd'), await buildInitramfs(options))
  await writeSquashfs(treeOf(await tinyRoot(busybox), join(dir, 'contents')), join(dir, 'root'), { time: 0 })
  root = await readFile(join(dir, 'root'))
  sha256 = createHash('sha256').update(root).digest('hex')
}, 10 * MINUTES)

afterAll(async () => {
  await Promise.all([...running].map(machine => machine.stop()))
  await rm(dir, { recursive: true })
})

/** Debian's own kernel for virtual machines, as its package has it, with the lists its installation would make. */
async function stockKernel(to: string): Promise<{ version: string; file: string }> {
  const { stdout } = await exec('apt-cache', ['depends', 'linux-image-cloud-amd64'])
  const name = /Depends: (linux-image-\S+)/.exec(stdout.toString())?.[1] ?? ''
  await exec('apt-get', ['-qq', 'download', name], { cwd: dir, timeout: 10 * MINUTES })
  const file = (await readdir(dir)).find(found => found.startsWith(name)) ?? ''
  await exec('dpkg-deb', ['-x', join(dir, file), to])
  const version = name.slice('linux-image-'.length)
  await exec('busybox', ['depmod', '-b', to, version])
  return { version, file: join(to, 'boot', `vmlinuz-${version}`) }
}

/** A root that says what it found, and goes to sleep. Its init is a link, as that of most systems. */
async function tinyRoot(busybox: string): Promise<Item[]> {
  const says = [
    '#!/bin/busybox sh',
    'PATH=/bin',
    'echo "root: init was given $*"',
    'echo "root: host $(busybox hostname), file $(busybox cat /etc/hostname)"',
    'while read -r line; do echo "root: plan $line"; done </run/muster/boot',
    'busybox grep -E "^[a-z]+ (/|/proc|/sys|/dev|/run) " /proc/mounts | while read -r what where _; do echo "root: mount $where $what"; done',
    'if echo x >/new 2>/dev/null; then echo "root: takes changes"; fi',
    'echo "root: up $(busybox ip -o addr show up | busybox grep -c "inet ") panic $(busybox cat /proc/sys/kernel/panic)"',
    'echo "root: end"',
    'exec busybox sleep 1000000',
  ]
  return [
    ...['bin', 'sbin', 'etc', 'usr', 'usr/lib'].map(path => ({ path, type: 'directory' as const })),
    { path: 'bin/busybox', type: 'file', content: await readFile(busybox), mode: 0o755 },
    { path: 'usr/lib/init', type: 'file', content: `${says.join('\n')}\n`, mode: 0o755 },
    { path: 'sbin/init', type: 'symlink', target: '/usr/lib/init' },
    { path: 'ballast', type: 'file', content: noise(8_000_000, 7) },
  ]
}

/** How the server answers a request for the root; the last goes on for ever. */
type Answer = 'right' | 'breaks' | 'wrong'

interface Home extends AsyncDisposable {
  /** As the machine sees it. */
  readonly url: string
  readonly reports: Record<string, unknown>[]
  /** Method, path and where it was to begin. */
  readonly requests: string[]
  readonly answers: Answer[]
  readonly next: string[]
}

async function home(...answers: Answer[]): Promise<Home> {
  const reports: Record<string, unknown>[] = []
  const requests: string[] = []
  const next: string[] = []
  const server: Server = createServer((request, response) => {
    const { method = '', url = '' } = request
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      if (method === 'POST') reports.push({ path: url, ...(JSON.parse(body) as object) })
      if (url === '/node/report') response.writeHead(204).end()
      else if (url === '/discover') response.end('id=m-1\n')
      else if (url === '/discover/next?id=m-1') response.end(next.shift() ?? 'wait=1\n')
      else sendRoot(request, response)
    })
  })
  const sendRoot = (request: IncomingMessage, response: ServerResponse): void => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? 'right'
    requests.push(`${request.method} ${request.url} ${from > 0 ? 'on' : 'all'} ${answer}`)
    const bytes = Buffer.from(root.subarray(from))
    if (answer === 'wrong') bytes[100] = (bytes[100] ?? 0) ^ 1
    const range = { 'content-range': `bytes ${from}-${root.length - 1}/${root.length}` }
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': bytes.length, ...(from > 0 && range) })
    if (answer === 'breaks') response.write(bytes.subarray(0, bytes.length >> 1), () => response.socket?.destroySoon())
    else response.end(bytes)
  }
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    // QEMU's own network: the machine reaches this machine's loopback at that address, and nothing else.
    url: `http://10.0.2.2:${(server.address() as AddressInfo).port}`,
    reports,
    requests,
    answers,
    next,
    [Symbol.asyncDispose]: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

interface Machine extends AsyncDisposable {
  readonly console: string[]
  /** The first line that matches, now or later. */
  line(pattern: RegExp): Promise<string>
}

const MAC = '52:54:00:4d:55:53'
const MACHINE = [
  '-M q35 -accel tcg,thread=multi -cpu max -m 512 -smp 2 -nodefaults -display none -serial stdio -no-reboot',
  `-netdev user,id=net -device virtio-net-pci,netdev=net,mac=${MAC}`,
].flatMap(line => line.split(' '))

async function boot(words: string): Promise<Machine> {
  const lines: string[] = []
  const waiting = new Set<{ readonly pattern: RegExp; readonly resolve: (line: string) => void }>()
  const onLine = (raw: string): void => {
    const line = raw.replace('\r', '')
    lines.push(line)
    for (const one of waiting) if (one.pattern.test(line)) one.resolve(line)
  }
  const machine = await startProgram(
    'qemu-system-x86_64',
    [...MACHINE, '-kernel', kernel.file, '-initrd', join(dir, 'initrd'), '-append', `console=ttyS0 quiet ${words}`],
    { onLine },
  )
  running.add(machine)
  void machine.ended.then(() => running.delete(machine))
  return {
    console: lines,
    line: pattern =>
      new Promise((resolve, reject) => {
        const there = lines.find(line => pattern.test(line))
        if (there !== undefined) return resolve(there)
        waiting.add({ pattern, resolve })
        void machine.ended.then(() => reject(new Error(`the machine ended:\n${lines.join('\n')}`)))
      }),
    [Symbol.asyncDispose]: () => machine.stop(),
  }
}

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
