/** A bare machine in QEMU that is given a kernel and our initramfs, and a server that it finds at the end of its wire. */
import { readFile, readdir } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { exec } from '../../src/lib/exec.ts'
import { type Item, noise } from '../../src/lib/pack/testing.ts'
import { type Program, startProgram } from '../../src/lib/program.ts'

export const MINUTES = 60_000
const running = new Set<Program>()
export const stopAll = async (): Promise<void> => void (await Promise.all([...running].map(machine => machine.stop())))

/** Debian's own kernel for virtual machines, as its package has it, with the lists its installation would make. */
export async function stockKernel(dir: string): Promise<{ version: string; file: string }> {
  const { stdout } = await exec('apt-cache', ['depends', 'linux-image-cloud-amd64'])
  const name = /Depends: (linux-image-\S+)/.exec(stdout.toString())?.[1] ?? ''
  await exec('apt-get', ['-qq', 'download', name], { cwd: dir, timeout: 10 * MINUTES })
  const file = (await readdir(dir)).find(found => found.startsWith(name)) ?? ''
  const to = join(dir, 'kernel')
  await exec('dpkg-deb', ['-x', join(dir, file), to])
  const version = name.slice('linux-image-'.length)
  await exec('busybox', ['depmod', '-b', to, version])
  return { version, file: join(to, 'boot', `vmlinuz-${version}`) }
}

/** A root that says what it found, and goes to sleep. Its init is a link, as that of most systems. */
export async function tinyRoot(busybox: string): Promise<Item[]> {
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

/** How the server answers a request for a blob; the last goes on for ever. */
type Answer = 'right' | 'breaks' | 'wrong'

export interface Home extends AsyncDisposable {
  /** As the machine sees it. */
  readonly url: string
  readonly reports: Record<string, unknown>[]
  /** Method, path and where it was to begin. */
  readonly requests: string[]
  readonly answers: Answer[]
  readonly next: string[]
}

export async function home(blobs: ReadonlyMap<string, Buffer>, ...answers: Answer[]): Promise<Home> {
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
      else sendBlob(request, response)
    })
  })
  const sendBlob = (request: IncomingMessage, response: ServerResponse): void => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? 'right'
    requests.push(`${request.method} ${request.url} ${from > 0 ? 'on' : 'all'} ${answer}`)
    const blob = blobs.get(request.url?.slice('/blob/'.length) ?? '')
    if (blob === undefined) return void response.writeHead(404).end()
    const bytes = Buffer.from(blob.subarray(from))
    if (answer === 'wrong') bytes[100] = (bytes[100] ?? 0) ^ 1
    const range = { 'content-range': `bytes ${from}-${blob.length - 1}/${blob.length}` }
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

export interface Machine extends AsyncDisposable {
  readonly console: string[]
  /** The first line that matches, now or later. */
  line(pattern: RegExp): Promise<string>
}

export const MAC = '52:54:00:4d:55:53'
const MACHINE = [
  '-M q35 -accel tcg,thread=multi -cpu max -m 512 -smp 2 -nodefaults -display none -serial stdio -no-reboot',
  `-netdev user,id=net -device virtio-net-pci,netdev=net,mac=${MAC}`,
].flatMap(line => line.split(' '))

/** Ends with the test file at the latest. */
export async function boot(kernel: string, initrd: string, words: string): Promise<Machine> {
  const lines: string[] = []
  const waiting = new Set<{ readonly pattern: RegExp; readonly resolve: (line: string) => void }>()
  const onLine = (raw: string): void => {
    const line = raw.replace('\r', '')
    lines.push(line)
    for (const one of waiting) if (one.pattern.test(line)) one.resolve(line)
  }
  const machine = await startProgram(
    'qemu-system-x86_64',
    [...MACHINE, '-kernel', kernel, '-initrd', initrd, '-append', `console=ttyS0 quiet ${words}`],
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
