import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Reply, dial, request, say } from '../api/testing.ts'
import { until } from '../control/testing.ts'
import { exec } from '../lib/exec.ts'
import { OWN_DISK } from '../nodes/boots.ts'
import type { Sighting } from '../nodes/reports.ts'
import { Artefacts } from './artefacts.ts'
import { createBootHttp } from './http.ts'
import type { ViewIndex } from './index-view.ts'
import { firstScript } from './ipxe.ts'
import { COMPUTE, MAC, STRANGER, boots, hex, indexOf, prov, sha256Of } from './testing.ts'
import type { BootNode } from './view.ts'

const BOOT = '0123456789abcdef'
const NOW = '2026-03-01T12:00:00.000Z'
const ID = expect.stringMatching(/^[0-9a-f]{16}$/) as string

let dir: string
let server: Server
let port: number
let index: ViewIndex | undefined
let told: Sighting[]
let heard: string[]
let logged: string[]

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-http-'))
  index = indexOf()
  told = []
  heard = []
  logged = []
  const logger = pino({ base: null }, { write: line => void logged.push((JSON.parse(line) as { msg: string }).msg) })
  server = createBootHttp({
    logger,
    artefacts: new Artefacts({ pathOf: sha256 => join(dir, sha256) }, { logger, budget: 1e6 }),
    index: () => index,
    servers: asked => [`http://${asked}:7180`, 'http://10.77.0.2:7180'],
    tell: sighting => {
      if (sighting.kind === 'phase' && sighting.mac === '52:54:00:00:00:bb') throw new Error('a defect')
      told.push(sighting)
    },
    heard: node => void heard.push(node),
    loader: async name => (name === 'snponly.efi' ? Buffer.from('loader') : undefined),
    discoveryExtras: () => hex('9'),
    now: () => new Date(NOW),
    patience: 2000,
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await rm(dir, { recursive: true, force: true })
})

const ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply> =>
  request({ host: '127.0.0.1', port: String(port) }, method, path, { body, ...(headers && { headers }) })
const get = (path: string): Promise<Reply> => ask('GET', path)
const answer = async (method: string, path: string, body?: unknown): Promise<[status: number, text: string]> => {
  const { status, text } = await ask(method, path, body)
  return [status, text]
}

const FROM = { at: NOW, server: '127.0.0.1' }
/** The site with n1 like this. */
const withNode = (more: Partial<BootNode>): ViewIndex =>
  indexOf({ nodes: [boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })], ...more })] })

describe('the first script', () => {
  it('is the same for all, and begins with the server that was asked', async () => {
    expect(await answer('GET', '/boot.ipxe')).toEqual([
      200,
      firstScript({ urls: ['http://127.0.0.1:7180', 'http://10.77.0.2:7180'] }),
    ])
    expect(told).toEqual([])
  })

  it('goes over the VLAN of the site', async () => {
    index = indexOf({ provision: { vlan: 12 } })
    expect((await get('/boot.ipxe')).text).toContain('\nvcreate --tag 12 net0 ||')
  })

  it('is there before there is a site', async () => {
    index = undefined
    expect((await get('/boot.ipxe')).status).toBe(200)
  })

  it('is described to who only asks for that', async () => {
    const { status, headers, text } = await ask('HEAD', '/boot.ipxe')
    expect([status, text]).toEqual([200, ''])
    expect(headers['content-length']).toBe(String((await get('/boot.ipxe')).text.length))
  })
})

const scriptOf = (mac: string): string => `/boot/script?mac=${mac}&uuid=&platform=efi&arch=x86_64&serial=x%20y&product=`
const idOf = ({ text }: Reply): string => / muster\.boot=([0-9a-f]{16}) /.exec(text)?.[1] ?? ''

describe('the script of a machine', () => {
  it('boots its image, under an id of its own each time', async () => {
    const [first, second] = [await get(scriptOf('52-54-00-00-00-01')), await get(scriptOf('52:54:00:00:00:01'))]
    expect([first.status, first.headers['content-type']]).toEqual([200, 'text/plain'])
    expect(first.text).toContain(` muster.node=n1 muster.boot=${idOf(first)} muster.mac=${MAC} `)
    expect(idOf(first)).not.toBe(idOf(second))
    expect(told).toEqual(
      [first, second].map(reply => ({
        kind: 'phase',
        ...FROM,
        mac: MAC,
        node: 'n1',
        boot: idOf(reply),
        phase: 'loader',
        image: COMPUTE.digest,
      })),
    )
  })

  it('boots its own disk, which is all that will be seen of it', async () => {
    index = withNode({ from: 'disk' })
    expect((await get(scriptOf(MAC))).text).toContain('# n1 boots from its own disk')
    expect(told).toEqual([
      { kind: 'phase', ...FROM, mac: MAC, node: 'n1', boot: ID, phase: 'loader', detail: OWN_DISK },
    ])
  })

  it('says what is wrong, and so does the server', async () => {
    index = withNode({ image: 'login' })
    expect((await get(scriptOf(MAC))).text).toContain(
      'Muster cannot boot this machine: there is no image login on the server.',
    )
    expect(told).toEqual([
      {
        kind: 'phase',
        ...FROM,
        mac: MAC,
        node: 'n1',
        boot: ID,
        phase: 'failed',
        detail: 'there is no image login on the server',
      },
    ])
  })

  it('runs the discovery system for who is unknown', async () => {
    const { text } = await get(scriptOf(STRANGER))
    expect(text).toContain(`muster.mode=discover `)
    expect(text).toContain(`initrd --name initrd1 \${base}/blob/${hex('9')} || goto failed`)
    expect(told).toEqual([{ kind: 'phase', ...FROM, mac: STRANGER, boot: ID, phase: 'loader' }])
  })

  it('allows a shell where the site does', async () => {
    expect((await get(scriptOf(MAC))).text).not.toContain('muster.shell')
    index = indexOf({ provision: { shell: true } })
    expect((await get(scriptOf(MAC))).text).toContain(' muster.shell=1 ')
    expect((await get(scriptOf(STRANGER))).text).toContain(' muster.shell=1 ')
  })

  it.for([
    '',
    '?mac=',
    '?mac=525400000001',
    '?mac=52-54-00-00-00',
    '?mac=%00',
    '?mac=%E0%A4%A',
    '?MAC=52-54-00-00-00-01',
  ])('is none for %j', async query => {
    expect(await answer('GET', `/boot/script${query}`)).toEqual([
      400,
      'error: mac is not a MAC address\nhint: ask with ?mac=52-54-00-12-34-56\n',
    ])
    expect(told).toEqual([])
  })

  it('is not known before there is a site', async () => {
    index = undefined
    expect(await answer('GET', scriptOf(MAC))).toEqual([
      409,
      'error: this boot server has not been told of the site yet\nhint: it asks again by itself; apply a site with: muster site apply\n',
    ])
    expect(logged).toEqual([])
  })
})

describe('the script of a machine whose node was swapped', () => {
  it('is that of its new node, although nobody has heard yet that it boots', async () => {
    const n1 = boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })] })
    const n2 = boots('n2', { interfaces: [prov('10.77.1.2')] })
    const swap = { node: 'n1', with: 'n2', by: 'olga', at: NOW, isActive: true, running: { [MAC]: 'n1' } }
    index = indexOf({ nodes: [n1, n2], swaps: [swap] })
    const { text } = await get(scriptOf(MAC))
    expect(text).toContain('muster.node=n2')
    expect(told).toMatchObject([{ kind: 'phase', phase: 'loader', node: 'n2', mac: MAC }])
  })
})

describe('a step of a loader', () => {
  const path = (step: string, more = ''): string => `/boot/step?boot=${BOOT}&mac=${MAC}&step=${step}${more}`

  it.for<[step: string, more: string, said: object]>([
    ['kernel', '', { phase: 'loader', detail: 'fetches kernel and initramfs' }],
    ['boot', '', { phase: 'kernel' }],
    ['failed', '', { phase: 'failed', detail: 'the loader failed: for no reason it knows' }],
    ['failed', '&detail=Connection%20reset', { phase: 'failed', detail: 'the loader failed: Connection reset' }],
    ['failed', '&detail=%1b%0aX%ff', { phase: 'failed', detail: 'the loader failed: ??X?' }],
    ['failed', `&detail=${'x'.repeat(999)}`, { phase: 'failed', detail: `the loader failed: ${'x'.repeat(200)}` }],
  ])('%s%s', async ([step, more, said]) => {
    expect(await answer('GET', path(step, more))).toEqual([200, 'ok\n'])
    expect(told).toEqual([{ kind: 'phase', ...FROM, mac: MAC, node: 'n1', boot: BOOT, ...said }])
  })

  it('of a stranger is of nobody', async () => {
    await get(`/boot/step?boot=${BOOT}&mac=${STRANGER}&step=boot`)
    expect(told).toEqual([{ kind: 'phase', ...FROM, mac: STRANGER, boot: BOOT, phase: 'kernel' }])
  })

  it('is taken even before there is a site', async () => {
    index = undefined
    expect((await get(path('boot'))).status).toBe(200)
  })

  it.for([
    path('reboot'),
    path(''),
    `/boot/step?mac=${MAC}&step=boot`,
    `/boot/step?boot=x&mac=${MAC}&step=boot`,
    `/boot/step?boot=${BOOT}&mac=x&step=boot`,
    '/boot/step',
  ])('%s is none', async wrong => {
    expect(await answer('GET', wrong)).toEqual([
      400,
      'error: that is no step of a boot\nhint: ask with boot, mac and step\n',
    ])
    expect(told).toEqual([])
  })
})

describe('a report of a node', () => {
  it.for<[said: object, expected: object]>([
    [{ phase: 'initrd' }, { at: NOW, phase: 'initrd' }],
    [
      { phase: 'fetch', ago: 1.5 },
      { at: '2026-03-01T11:59:58.500Z', phase: 'fetch' },
    ],
    [
      { phase: 'agent', ago: 200_000 },
      { at: '2026-02-27T04:26:40.000Z', phase: 'agent' },
    ],
    [
      { phase: 'failed', detail: 'no route\nto host' },
      { at: NOW, phase: 'failed', detail: 'no route?to host' },
    ],
  ])('%j', async ([said, expected]) => {
    const { status, text, headers } = await ask('POST', '/node/report', { boot: BOOT, mac: MAC, ...said })
    expect([status, text, headers['content-length']]).toEqual([204, '', undefined])
    expect(told).toEqual([{ kind: 'phase', server: '127.0.0.1', mac: MAC, node: 'n1', boot: BOOT, ...expected }])
  })

  it('of a stranger is of nobody', async () => {
    expect((await ask('POST', '/node/report', { boot: BOOT, mac: STRANGER, phase: 'root' })).status).toBe(204)
    expect(told).toEqual([{ kind: 'phase', ...FROM, mac: STRANGER, boot: BOOT, phase: 'root' }])
  })
})

describe('a heartbeat', () => {
  const beat = {
    boot: BOOT,
    mac: MAC,
    node: 'somebody',
    hostname: 'n1',
    image: COMPUTE.digest,
    kernel: '6.1',
    addresses: ['10.77.1.1/16'],
  }

  it('is of the node that the machine is, whatever it says', async () => {
    expect(await answer('POST', '/node/heartbeat', { ...beat, health: { status: 'degraded', reason: 'hot' } })).toEqual(
      [200, 'interval=10\n'],
    )
    expect(heard).toEqual(['n1'])
    expect(told).toEqual([
      {
        kind: 'status',
        ...FROM,
        mac: MAC,
        node: 'n1',
        boot: BOOT,
        image: COMPUTE.digest,
        kernel: '6.1',
        hostname: 'n1',
        addresses: ['10.77.1.1/16'],
        health: { status: 'degraded', reason: 'hot' },
      },
    ])
  })

  it('of a machine that is no node is not counted', async () => {
    expect(await answer('POST', '/node/heartbeat', { ...beat, mac: STRANGER })).toEqual([
      404,
      'error: this machine is no node of the site\nhint: it goes on, unwatched\n',
    ])
    expect([heard, told]).toEqual([[], []])
  })
})

describe.for([
  ['answered at once', ''],
  ['answered by the server, as its head is out of the ordinary', 'Trailer: x'],
] as const)('heartbeats over a request that lasts, %s', ([, header]) => {
  const beat = JSON.stringify({ boot: BOOT, mac: MAC, hostname: 'n1', kernel: '6.1' })
  const status = { kind: 'status', ...FROM, mac: MAC, node: 'n1', boot: BOOT, kernel: '6.1', hostname: 'n1' }
  const whole = { ...status, addresses: [], health: { status: 'ok', reason: '' } }

  const head = `POST /node/heartbeats HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n${header === '' ? '' : `${header}\r\n`}\r\n`

  /** curl, as the agent uses it: what is put in goes out at once, what is replied comes out at the next line. */
  async function curl(lines: readonly string[]): Promise<string> {
    const args = [
      '-sN',
      '-X',
      'POST',
      '-T',
      '-',
      '-H',
      'Expect:',
      '-H',
      header,
      `http://127.0.0.1:${port}/node/heartbeats`,
    ]
    const { stdout } = await exec('curl', args, { input: lines.map(line => `${line}\n`).join('') })
    return stdout.toString('utf8')
  }

  it('each line is one; an empty one says the same as the line before', async () => {
    const other = JSON.stringify({ boot: BOOT, mac: MAC, hostname: 'other', kernel: '6.1' })
    expect(await curl([beat, '', other, ''])).toBe('interval=10\n'.repeat(4))
    expect(heard).toEqual(['n1', 'n1', 'n1', 'n1'])
    expect(told).toEqual([whole, whole, { ...whole, hostname: 'other' }, { ...whole, hostname: 'other' }])
  })

  /** Somebody who waits for each reply. */
  async function talk(): Promise<(line: string) => Promise<string>> {
    const socket = await dial(port)
    socket.write(head)
    return async line => {
      socket.write(`${(line.length + 1).toString(16)}\r\n${line}\n\r\n`)
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      return chunk.toString('latin1')
    }
  }

  it('are answered one by one', async () => {
    const beats = await talk()
    expect(await beats(beat)).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(heard).toEqual(['n1'])
    expect(await beats('')).toBe('c\r\ninterval=10\n\r\n')
    expect(heard).toEqual(['n1', 'n1'])
  })

  it('a line may come in pieces, with characters of more than one byte cut in two', async () => {
    const bytes = Buffer.from(`${beat.replace('"n1"', '"knötchen"')}\n`)
    const cut = bytes.indexOf(0xc3) + 1
    const pieces = [bytes.subarray(0, 20), bytes.subarray(20, cut), bytes.subarray(cut)]
    const socket = await dial(port)
    socket.write(head)
    for (const piece of pieces) {
      socket.write(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]))
      await new Promise(setImmediate)
    }
    await until('it is heard', () => told.length > 0)
    expect(told).toEqual([{ ...whole, hostname: 'knötchen' }])
    socket.destroy()
  })

  it.for([
    ['nothing before', ''],
    ['no JSON', 'hello'],
    ['no heartbeat', '{"boot":"x"}'],
    ['a line without end', 'x'.repeat(20_000)],
  ] as const)('%s: is refused, and nothing after it is read', async ([, line]) => {
    expect(await curl([line, beat])).toBe('error: that is no heartbeat\nhint: a line of JSON comes first\n')
    expect(heard).toEqual([])
  })

  it.for([
    ['no number', 'x\r\n\n\r\n'],
    ['a number without end', '1'.repeat(100_000)],
    ['an extension', '1;a=b\r\n\n\r\n'.repeat(1000)],
    ['more than it says', '1\r\n\nmore\r\n'],
  ] as const)('chunks with %s do no harm', async ([, chunk]) => {
    const text = await say(
      await dial(port),
      `${head}${(beat.length + 1).toString(16)}\r\n${beat}\n\r\n${chunk}0\r\n\r\n`,
    )
    expect(text).toMatch(/^(HTTP\/1\.1 200 OK|HTTP\/1\.1 400|$)/)
    expect((await get('/healthz')).status).toBe(200)
  })

  it('end when the machine is no node any more', async () => {
    const beats = await talk()
    await beats(beat)
    index = indexOf({ nodes: [] })
    expect(await beats('')).toMatch(/error: this machine is no node of the site\nhint: it goes on, unwatched\n/)
    expect(heard).toEqual(['n1'])
  })
})

describe('a machine that says what it is', () => {
  it('is told its id', async () => {
    const disks = Array.from({ length: 200 }, (_, number) => ({
      name: `sd${number}`,
      size: 1e12,
      model: 'x'.repeat(100),
    }))
    expect(await answer('POST', '/discover', { mac: STRANGER, serial: 'S1', disks })).toEqual([
      200,
      'id=525400ffffff\n',
    ])
    expect(told).toMatchObject([{ kind: 'machine', ...FROM, facts: { mac: STRANGER, serial: 'S1', disks } }])
  })

  it('waits while nobody has decided', async () => {
    expect(await answer('GET', '/discover/next?id=525400ffffff')).toEqual([200, 'wait=3\n'])
    expect(told).toEqual([])
  })

  it('goes on as the node it has become', async () => {
    expect(await answer('GET', '/discover/next?id=525400000001&boot=0123456789abcdef')).toEqual([
      200,
      `muster.root=squashfs
muster.sha256=${hex('3')}
muster.size=300000000
muster.overlay=50%
muster.kernel=6.1.0-30-amd64
muster.node=n1
muster.boot=0123456789abcdef
muster.mac=52:54:00:00:00:01
muster.servers=http://127.0.0.1:7180,http://10.77.0.2:7180
muster.image=sha256:${hex('a')}
`,
    ])
    expect(told).toEqual([
      {
        kind: 'phase',
        ...FROM,
        mac: MAC,
        node: 'n1',
        boot: BOOT,
        phase: 'initrd',
        detail: 'adopted while it ran the discovery system',
        image: COMPUTE.digest,
      },
    ])
  })

  it('gets an id for its boot where it has none', async () => {
    for (const query of ['', '&boot=', '&boot=x'])
      expect((await get(`/discover/next?id=525400000001${query}`)).text).toMatch(/^muster\.boot=[0-9a-f]{16}$/m)
  })

  it.for<[what: string, more: Partial<BootNode>, text: string]>([
    ['a node that boots a whole cpio starts over', { form: 'cpio' }, 'reboot=1\n'],
    ['a node that boots its disk starts over', { from: 'disk' }, 'reboot=1\n'],
    ['a node whose image is missing waits', { image: 'login' }, 'wait=3\n'],
  ])('%s', async ([, more, text]) => {
    index = withNode(more)
    expect(await answer('GET', '/discover/next?id=525400000001')).toEqual([200, text])
  })

  it('has an id', async () => {
    for (const query of ['', '?id=', '?id=52:54:00:00:00:01', '?id=525400FFFFFF', '?id=../../..'])
      expect(await answer('GET', `/discover/next${query}`)).toEqual([
        400,
        'error: that is no id of a machine\nhint: post to /discover first\n',
      ])
  })
})

describe('other files', () => {
  it('artefacts come by their digest', async () => {
    const sha256 = sha256Of('content')
    await writeFile(join(dir, sha256), 'content')
    expect(await answer('GET', `/blob/${sha256}`)).toEqual([200, 'content'])
    const head = await ask('HEAD', `/blob/${sha256}`)
    expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '7', ''])
    const part = await ask('GET', `/blob/${sha256}`, undefined, { range: 'bytes=3-' })
    expect([part.status, part.text]).toEqual([206, 'tent'])
    expect((await get(`/blob/${hex('0')}`)).status).toBe(404)
  })

  it.for(['', 'x', hex('A'), `${hex('a')}0`, '../../etc/passwd', '..%2f..%2fetc%2fpasswd'])(
    '%j is no digest',
    async name => {
      expect(await answer('GET', `/blob/${name}`)).toEqual([
        400,
        'error: that is no digest\nhint: ask for /blob/SHA256\n',
      ])
    },
  )

  it('loaders come by their name', async () => {
    const { status, headers, text } = await get('/loader/snponly.efi')
    expect([status, headers['content-type'], text]).toEqual([200, 'application/efi', 'loader'])
    const head = await ask('HEAD', '/loader/snponly.efi')
    expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '6', ''])
  })

  it.for(['other.efi', '', '../x', 'a/b', '%2e%2e', 'x'.repeat(100)])('there is no loader %j', async name => {
    expect(await answer('GET', `/loader/${name}`)).toEqual([
      404,
      'error: there is no such loader\nhint: see the table of loaders in the documentation\n',
    ])
  })

  it('are not needed to say that it is well', async () => {
    expect(await answer('GET', '/healthz')).toEqual([200, 'ok\n'])
  })
})

describe('what nobody should ask', () => {
  it.for([
    ['GET', '/'],
    ['GET', '/boot'],
    ['GET', '/boot.ipxe/'],
    ['GET', '/node/report'],
    ['GET', '/discover'],
    ['POST', '/boot/script'],
    ['POST', '/boot.ipxe'],
    ['PUT', '/node/report'],
    ['DELETE', `/blob/${hex('a')}`],
    ['OPTIONS', '/'],
  ])('%s %s', async ([method = '', path = '']) => {
    expect(await answer(method, path)).toEqual([
      404,
      `error: there is no ${method} ${path.slice(0, 100)}\nhint: see the documentation of boot servers\n`,
    ])
  })

  it.for<[what: string, body: string, message: string]>([
    ['nothing', '', 'the body is not JSON'],
    ['no JSON', 'phase=ready', 'the body is not JSON'],
    ['half of it', '{"boot":', 'the body is not JSON'],
    ['bytes', '\0\u00ff', 'the body is not JSON'],
    ['a list', '[]', ': Invalid input: expected object, received array'],
    ['null', 'null', ': Invalid input: expected object, received null'],
    ['no boot', `{"mac":"${MAC}","phase":"root"}`, 'boot: Invalid input: expected string, received undefined'],
    ['another boot', `{"boot":"x","mac":"${MAC}","phase":"root"}`, 'boot: is not the id of a boot'],
    ['no MAC', `{"boot":"${BOOT}","mac":"x","phase":"root"}`, 'mac: is not a MAC address'],
    ['a deep one', '['.repeat(8000), 'the body is not JSON'],
  ])('a report that is %s', async ([, body, message]) => {
    expect(await answer('POST', '/node/report', body)).toEqual([
      400,
      `error: ${message}\nhint: see the API document at /api/v1/openapi.json\n`,
    ])
    expect([told, logged]).toEqual([[], []])
  })

  it.for(['/node/report', '/node/heartbeat', '/discover'])('%s: a prototype does no harm', async path => {
    await ask(
      'POST',
      path,
      `{"boot":"${BOOT}","mac":"${MAC}","phase":"root","__proto__":{"polluted":1},"constructor":1}`,
    )
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    expect(JSON.stringify(told)).not.toContain('polluted')
  })

  it.for<[path: string, limit: number]>([
    ['/node/report', 16_384],
    ['/node/heartbeat', 16_384],
    ['/discover', 262_144],
  ])('%s: a body of more than %i bytes', async ([path, limit]) => {
    const fitting = JSON.stringify({ boot: BOOT, mac: MAC, phase: 'root', more: '' })
    const body = (size: number): string => fitting.replace('""', `"${'x'.repeat(size - fitting.length)}"`)
    expect((await ask('POST', path, body(limit))).status).toBeLessThan(300)
    told = []
    for (const size of [limit + 1, 4_000_000])
      expect(await answer('POST', path, body(size))).toEqual([
        413,
        `error: a report may have ${limit} bytes\nhint: send less at once\n`,
      ])
    expect([told, logged]).toEqual([[], []])
  })

  it('a body that never ends', async () => {
    const socket = await dial(port)
    const answered = say(socket, 'POST /node/report HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`
    socket.write(chunk.repeat(10))
    expect(await answered).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('a body that breaks off', async () => {
    const socket = await dial(port)
    socket.write('POST /node/report HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"boot"')
    await once(server, 'request')
    socket.destroy()
    await until(
      'the connection is gone',
      () => new Promise(done => server.getConnections((_, count) => done(count === 0))),
    )
    expect([told, logged]).toEqual([[], []])
    expect((await get('/healthz')).status).toBe(200)
  })

  it('no HTTP at all', async () => {
    for (const rubbish of [
      '\0\0\0\0\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
      'GET /boot.ipxe HTTP/1.1\r\nHost: x\r\nA\0: b\r\n\r\n',
    ])
      await say(await dial(port), rubbish)
    await say(await dial(port), `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect((await get('/healthz')).status).toBe(200)
    expect(logged).toEqual([])
  })

  it('a defect of ours is no secret kept: it is logged, and says nothing of us', async () => {
    expect(await answer('GET', `/boot/step?boot=${BOOT}&mac=52:54:00:00:00:bb&step=boot`)).toEqual([
      500,
      'error: something went wrong here\nhint: ask again, or another server\n',
    ])
    expect(logged).toEqual(['answer to a node failed'])
  })
})

describe('many and slow ones', () => {
  it('a thousand at once all get their script', async () => {
    const macs = Array.from(
      { length: 1000 },
      (_, number) =>
        `52:54:00:01:${(number >> 8).toString(16).padStart(2, '0')}:${(number & 255).toString(16).padStart(2, '0')}`,
    )
    index = indexOf({
      nodes: macs.map((mac, number) => boots(`c${number}`, { interfaces: [prov('10.77.1.1', { mac })] })),
    })
    const replies = await Promise.all(macs.map(mac => get(`/boot/script?mac=${mac}`)))
    expect(replies.map(({ text }) => / muster\.node=(\S+) /.exec(text)?.[1])).toEqual(
      macs.map((_, number) => `c${number}`),
    )
    expect(new Set(told.map(sighting => sighting.kind === 'phase' && sighting.node))).toEqual(
      new Set(macs.map((_, number) => `c${number}`)),
    )
  })

  it('those who say nothing do not keep others from it', async () => {
    const silent = await Promise.all(Array.from({ length: 300 }, () => dial(port)))
    for (const socket of silent.slice(0, 150))
      socket.write('POST /node/report HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n')
    expect((await get('/healthz')).status).toBe(200)
    for (const socket of silent) socket.destroy()
  })

  it('nobody has for ever to ask, nor to take the answer', () => {
    const { headersTimeout, requestTimeout, keepAliveTimeout, timeout } = server
    expect({ headersTimeout, requestTimeout, keepAliveTimeout, timeout }).toEqual({
      headersTimeout: 20_000,
      requestTimeout: 0,
      keepAliveTimeout: 15_000,
      timeout: 120_000,
    })
  })

  it('a body must come soon', async () => {
    const text = say(await dial(port), 'POST /node/report HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{')
    expect(await text).toBe('')
  })

  it('a connection serves many requests', async () => {
    const socket = await dial(port)
    const one = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
    const text = await say(socket, one.repeat(3) + one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
    expect(text.match(/^HTTP\/1\.1 200 OK/gm)).toHaveLength(4)
  })
})
