import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer as createWeb } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { exec } from '../../../lib/exec.ts'
import { temporaryDir } from '../../../site/testing.ts'
import { hostSubject, outcomesOf, treeSubject } from '../testing.ts'

/** Of a system that runs, which is this machine. */
async function tcpServer(host: string): Promise<number> {
  const server = createServer(socket => socket.end()).listen(0, host)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A port nobody listens on: it was somebody's a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('ports', async () => {
  const udp = createSocket('udp4').bind(0, '127.0.0.1')
  onTestFinished(() => void udp.close())
  await once(udp, 'listening')
  const [tcp, tcp6, free] = [await tcpServer('127.0.0.1'), await tcpServer('::1'), await freePort()]
  expect(
    await outcomesOf(
      await hostSubject(),
      `port:
  one: { port: "${tcp}", listening: true, ip: [127.0.0.1] }
  two: { port: "tcp:${tcp}", listening: true, ip: { consist-of: [0.0.0.0] } }
  six: { port: "tcp6:${tcp6}", listening: true, ip: ["::1"] }
  udp: { port: "udp:${udp.address().port}", listening: true, ip: [127.0.0.1] }
  other: { port: "udp:${tcp}", listening: false, ip: [x] }
  free: { port: "tcp:${free}", listening: true }
`,
    ),
  ).toEqual([
    'one listening: passed',
    'one ip: passed',
    'two listening: passed',
    'two ip: failed, ["127.0.0.1"]',
    'six listening: passed',
    'six ip: passed',
    'udp listening: passed',
    'udp ip: passed',
    'other listening: passed',
    'other ip: skipped, listening is false',
    'free listening: failed, false',
  ])
})

test('addresses that can be reached', async () => {
  const [open, closed] = [await tcpServer('127.0.0.1'), await freePort()]
  const checks = `addr:
  open: { address: "tcp://127.0.0.1:${open}", reachable: true, timeout: 5000 }
  from: { address: "tcp://127.0.0.1:${open}", reachable: true, local-address: 127.0.0.2, timeout: 5000 }
  closed: { address: "tcp://127.0.0.1:${closed}", reachable: true, timeout: 5000 }
`
  const outcomes = ['open reachable: passed', 'from reachable: passed', 'closed reachable: failed, false']
  expect(await outcomesOf(await hostSubject(), checks)).toEqual(outcomes)
  // Busybox has a way of its own; without a network nobody is reached.
  expect(await outcomesOf(await treeSubject({}, undefined, ['sh']), checks)).toEqual(
    ['open', 'from', 'closed'].map(name => `${name} reachable: failed, false`),
  )
})

test('processes by the name of their program', async () => {
  const program = join(await temporaryDir(), 'muster-checked-sleeper')
  await copyFile('/usr/bin/sleep', program)
  const ended = new AbortController()
  const running = exec(program, ['600'], { signal: ended.signal, timeout: 0 }).catch(() => undefined)
  onTestFinished(async () => {
    ended.abort()
    await running
  })
  expect(
    await outcomesOf(
      await hostSubject(),
      'process: { muster-checked-sleeper: { running: true }, x: { comm: muster-checked-sleeper, running: false }, muster-absent: { running: false } }',
    ),
  ).toEqual(['muster-checked-sleeper running: passed', 'x running: failed, true', 'muster-absent running: passed'])
  // The shell that looks is none of the image's.
  expect(await outcomesOf(await treeSubject({}), 'process: { sh: { running: false } }')).toEqual(['sh running: passed'])
})

test('parameters of the kernel', async () => {
  const pages = (await readFile('/proc/sys/vm/overcommit_memory', 'utf8')).trim()
  expect(
    await outcomesOf(
      await hostSubject(),
      `kernel-param:
  kernel.ostype: { value: Linux }
  vm.overcommit_memory: { value: "${pages}" }
  forwarding: { name: net/ipv4/conf/lo/forwarding, value: { le: 1 } }
  kernel.pid_max: { value: { lt: 10 } }
  kernel.absent: { value: { not: x } }
`,
    ),
  ).toEqual([
    'kernel.ostype value: passed',
    'vm.overcommit_memory value: passed',
    'forwarding value: passed',
    expect.stringMatching(/^kernel.pid_max value: failed, "\d+"$/),
    'kernel.absent value: failed, there is no parameter kernel.absent',
  ])
})

test('mounts', async () => {
  expect(
    await outcomesOf(
      await hostSubject(),
      `mount:
  /proc: { exists: true, filesystem: proc, source: proc, opts: [rw], vfs-opts: { contain-element: rw } }
  /: { exists: true, usage: { le: 100 }, filesystem: { not: proc } }
  wrong: { mountpoint: /proc, exists: true, filesystem: xfs, opts: [absent] }
  /proc/absent: { exists: true, source: x }
`,
    ),
  ).toEqual([
    '/proc exists: passed',
    '/proc opts: passed',
    '/proc vfs-opts: passed',
    '/proc source: passed',
    '/proc filesystem: passed',
    '/ exists: passed',
    '/ filesystem: passed',
    '/ usage: passed',
    'wrong exists: passed',
    expect.stringMatching(/^wrong opts: failed, \["rw"/),
    'wrong filesystem: failed, "proc"',
    '/proc/absent exists: failed, false',
    '/proc/absent source: skipped, exists is false',
  ])
})

test('interfaces', async () => {
  expect(
    await outcomesOf(
      await hostSubject(),
      'interface: { lo: { exists: true, mtu: 65536, addrs: [127.0.0.1/8] }, x: { name: lo, exists: true, mtu: { lt: 9 } }, eth999: { exists: true, mtu: 1 } }',
    ),
  ).toEqual([
    'lo exists: passed',
    'lo addrs: passed',
    'lo mtu: passed',
    'x exists: passed',
    'x mtu: failed, 65536',
    'eth999 exists: failed, false',
    'eth999 mtu: skipped, exists is false',
  ])
})

test('names', async () => {
  const subject = await treeSubject({
    'etc/hosts': '127.0.0.1 localhost\n10.1.2.3 head\nfd00::3 head\n',
    'etc/host.conf': 'multi on\n',
    'etc/nsswitch.conf': 'hosts: files\n',
  })
  expect(
    await outcomesOf(
      subject,
      `dns:
  head: { resolvable: true, addrs: { consist-of: [10.1.2.3, "fd00::3"] } }
  x: { resolve: head, resolvable: true, addrs: [10.9.9.9] }
  absent: { resolvable: true, addrs: [x] }
  MX:head: { resolvable: true }
`,
    ),
  ).toEqual([
    'head resolvable: passed',
    'head addrs: passed',
    'x resolvable: passed',
    expect.stringMatching(/^x addrs: failed, .*"fd00::3"/),
    'absent resolvable: failed, false',
    'absent addrs: skipped, resolvable is false',
    'MX:head resolvable: failed, a MX record is asked of a server: say which with server:',
  ])
})

async function web(): Promise<string> {
  const server = createWeb((request, response) => {
    if (request.url === '/old') return response.writeHead(301, { location: '/new' }).end('moved')
    response.setHeader('X-Method', request.method ?? '')
    response.setHeader('X-User', request.headers.authorization ?? 'nobody')
    response.setHeader('X-Asked', request.headers['x-ask'] ?? 'nothing')
    response.setHeader('x-lower-case', 'Yes')
    response.write('hello\n')
    return request.pipe(response)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('HTTP is asked with what a check says', async () => {
  const url = await web()
  expect(
    await outcomesOf(
      await hostSubject(),
      `http:
  plain: { url: "${url}/a[1]{b}", status: 200, headers: ["X-User: nobody", "X-Lower-Case: Yes", "!/^HTTP/"], body: [hello] }
  redirected: { url: "${url}/old", status: 200, body: [hello, "!moved"] }
  stays: { url: "${url}/old", status: 301, no-follow-redirects: true, headers: ["/(?i)^location: .new$/"], body: moved }
  all:
    url: ${url}
    status: { lt: 300 }
    method: PUT
    username: ada
    password: 'se"cr\\et'
    request-headers: ["X-Ask: 42"]
    request-body: "@/etc/hostname"
    headers: ["X-Method: PUT", "X-Asked: 42", "X-User: Basic ${Buffer.from('ada:se"cr\\et').toString('base64')}"]
    body: { contain-element: "@/etc/hostname" }
  wrong: { url: "${url}", status: 404, body: [bye] }
  nobody: { url: "http://127.0.0.1:${await freePort()}", status: { not: 200 } }
`,
    ),
  ).toEqual([
    'plain status: passed',
    'plain headers: passed',
    'plain body: passed',
    'redirected status: passed',
    'redirected body: passed',
    'stays status: passed',
    'stays headers: passed',
    'stays body: passed',
    'all status: passed',
    'all headers: passed',
    'all body: passed',
    'wrong status: failed, 200',
    'wrong body: failed, "hello\\n"',
    expect.stringMatching(/^nobody status: failed, curl: \(7\) /),
  ])
})
