/** dnsmasq as it really answers, in networks of its own: each row of the table of who is told what. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DhcpDesired } from '../../src/boot/dhcp/desired.ts'
import type { Question } from '../../src/boot/dhcp/fixtures/ask.ts'
import type { RelayedRequest } from '../../src/boot/dhcp/relayed.ts'
import { sample, sampleHost } from '../../src/boot/dhcp/samples.ts'
import { Namespace, Served, Switch, temporaryDirectory, until } from '../../src/boot/dhcp/testing.ts'
import { exec } from '../../src/lib/exec.ts'
import type { Program } from '../../src/lib/program.ts'
import type { Place } from '../../src/nodes/places.ts'
import { Recorder } from '../../src/nodes/recorder.ts'
import { openSqliteStore } from '../../src/state/sqlite.ts'
import type { Store } from '../../src/state/store.ts'

const hex = (text: string): string => Buffer.from(text).toString('hex')
const arch = (number: number): string => number.toString(16).padStart(4, '0')

/** What firmware sends. */
const pxe = (number: number): Record<string, string> => ({
  55: '0103060c0f2b3c42433c80',
  60: hex(`PXEClient:Arch:${String(number).padStart(5, '0')}:UNDI:003001`),
  93: arch(number),
  94: '010300',
})
const http = (number: number): Record<string, string> => ({
  55: '01030643',
  60: hex(`HTTPClient:Arch:${String(number).padStart(5, '0')}:UNDI:003001`),
  93: arch(number),
})
const NODE = '52:54:00:00:00:01'
const BOOTS_NOT = '52:54:00:00:00:02'
const STRANGER = '52:54:00:99:99:99'
const SCRIPT = 'http://10.77.0.1:7180/boot.ipxe'

const stack = new AsyncDisposableStack()
afterAll(() => stack.disposeAsync())
const keep = async <Thing extends AsyncDisposable>(thing: Promise<Thing>): Promise<Thing> => stack.use(await thing)

let server: Namespace
let client: Namespace
let relay: Namespace
let far: Namespace
let dir: string
let served: Served

const site = (change: Partial<DhcpDesired> = {}): DhcpDesired =>
  sample({
    networks: [
      { name: 'prov', cidr: '10.77.0.0/16', gateway: '10.77.0.254', unknown: '10.77.250.0/24' },
      { name: 'far', cidr: '10.78.0.0/16', gateway: '10.78.0.254', unknown: '10.78.250.0/24', domain: 'far.example' },
    ],
    hosts: [
      sampleHost(1),
      sampleHost(2, { boots: false }),
      sampleHost(3, { network: 'far', address: '10.78.1.3', domain: 'far.example' }),
      sampleHost(1, { network: 'ib', address: '10.80.1.1', primary: false, macs: [] }),
    ],
    ...change,
  })

/** The server and a client on one switch; behind a relay, which is also their router, another one. */
beforeAll(async () => {
  const [near, away] = [await keep(Switch.create()), await keep(Switch.create())]
  ;[server, client] = [await keep(Namespace.create()), await keep(Namespace.create())]
  ;[relay, far] = [await keep(Namespace.create()), await keep(Namespace.create())]
  for (const namespace of [server, client, relay]) await near.plug(namespace, 'eth0')
  await away.plug(relay, 'eth1')
  await away.plug(far, 'eth0')
  await server.ip('address add 10.77.0.1/16 dev eth0', 'route add 10.78.0.0/16 via 10.77.0.254')
  await client.ip('address add 10.77.0.9/16 dev eth0', 'route add 255.255.255.255 dev eth0')
  await relay.ip('address add 10.77.0.254/16 dev eth0', 'address add 10.78.0.254/16 dev eth1')
  await relay.run('sysctl', ['-q', '-w', 'net.ipv4.ip_forward=1'])
  dir = (await keep(temporaryDirectory())).path
  served = await keep(Served.start(server, dir))
  await served.apply(site())
})

const ask = async (question: Question) => {
  const [answer] = await client.ask([question])
  if (answer === null || answer === undefined) throw new Error('there was no answer')
  return answer
}

const addressOf = async (mac: string): Promise<string | undefined> => (await ask({ mac })).yiaddr

const fetched = async (file: string): Promise<string> =>
  (await client.run('sh', ['-c', `curl -sS --max-time 60 tftp://10.77.0.1/${file} | sha256sum`])).slice(0, 64)
const onDisk = async (file: string): Promise<string> => (await client.run('sha256sum', [file])).slice(0, 64)

const pids = async (): Promise<(number | undefined)[]> => (await served.state()).map(({ pid }) => pid)

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('what a node is told to load', () => {
  test.each([
    ['BIOS', pxe(0x00), 'undionly.kpxe'],
    ['UEFI, as it should be', pxe(0x07), 'snponly.efi'],
    ['UEFI, as it also is', pxe(0x09), 'snponly.efi'],
    ['UEFI that calls itself 32-bit', pxe(0x06), 'snponly.efi'],
    ['iPXE by its user class', { ...pxe(0x00), 77: hex('iPXE') }, SCRIPT],
    ['iPXE by a user class as RFC 3004 wants it', { ...pxe(0x07), 77: `04${hex('iPXE')}` }, SCRIPT],
    ['iPXE by option 175', { ...pxe(0x07), 175: 'b105010100' }, SCRIPT],
    ['iPXE that was loaded over HTTP', { ...http(0x10), 77: hex('iPXE') }, SCRIPT],
  ])('%s', async (_, options, file) => {
    const answer = await ask({ mac: NODE, options })
    expect(answer).toMatchObject({ yiaddr: '10.77.1.1', siaddr: '10.77.0.1', file })
  })

  test('firmware is told not to look for other boot servers', async () => {
    const { options } = await ask({ mac: NODE, options: pxe(0x07) })
    expect(options).toMatchObject({ 60: hex('PXEClient'), 43: '060108ff' })
  })

  test('iPXE is told not to wait for a proxy', async () => {
    const { options } = await ask({ mac: NODE, options: { ...pxe(0x07), 77: hex('iPXE') } })
    expect(options).toMatchObject({ 175: 'b00101ff' })
  })

  test('UEFI that boots over HTTP gets a whole URL, as the kind of server it looks for', async () => {
    const url = 'http://10.77.0.1:7180/loader/ipxe.efi'
    const { file, options } = await ask({ mac: NODE, options: http(0x10) })
    expect({ file, options }).toMatchObject({ file: url, options: { 60: hex('HTTPClient'), 67: `${hex(url)}00` } })
  })

  test.each([
    ['arm64, which there is no loader for', pxe(0x0b)],
    ['who does not say that it boots', { 55: '0103060f' }],
  ])('nothing: %s', async (_, options) => {
    const answer = await ask({ mac: NODE, options })
    expect(answer).toMatchObject({ yiaddr: '10.77.1.1', file: '' })
    expect(answer.options).not.toHaveProperty('67')
  })

  test.each([
    ['BIOS', pxe(0x00)],
    ['UEFI', pxe(0x07)],
    ['UEFI', pxe(0x09)],
    ['UEFI over HTTP', http(0x10)],
    ['iPXE', { ...pxe(0x07), 77: hex('iPXE') }],
  ])('a node that should not boot from us gets an address and nothing else, also with %s', async (_, options) => {
    const answer = await ask({ mac: BOOTS_NOT, options })
    expect(answer).toMatchObject({ yiaddr: '10.77.1.2', file: '' })
    for (const option of ['43', '60', '66', '67']) expect(answer.options).not.toHaveProperty(option)
  })
})

describe('what comes with an address', () => {
  test('netmask, router, name server and domain of its network, for an hour', async () => {
    const { options } = await ask({ mac: NODE, options: { 55: '0103060f77' } })
    expect(options).toMatchObject({
      1: 'ffff0000',
      3: '0a4d00fe',
      6: '0a4d0001',
      15: hex('cluster.example'),
      51: '00000e10',
      54: '0a4d0001',
    })
  })

  test('a client gets it, whatever it calls itself', async () => {
    const [first, second] = await Promise.all(
      ['01525400000001', 'ff0102030405'].map(id => ask({ mac: NODE, options: { 61: id } })),
    )
    expect([first?.yiaddr, second?.yiaddr]).toEqual(['10.77.1.1', '10.77.1.1'])
  })

  test("a machine that we do not boot is told its name; what it calls itself is nobody's name", async () => {
    const request = { message: 'request', requested: '10.77.1.2', server: '10.77.0.1' } as const
    const { options } = await ask({ mac: BOOTS_NOT, ...request, options: { 12: hex('head'), 55: '0c' } })
    expect(options).toMatchObject({ 53: '05', 12: hex('n002') })
  })

  test('an IPv6 prefix, without which iPXE waits, but no route through us', async () => {
    const addresses = await until(
      () => client.run('ip', ['-6', '-brief', 'address', 'show', 'dev', 'eth0']),
      text => text.includes('fd05:9bb8:a48e:'),
    )
    expect(addresses).toMatch(/fd05:9bb8:a48e:0:[0-9a-f:]+\/64/)
    expect(await client.run('ip', ['-6', 'route', 'show', 'default'])).toBe('')
  })
})

describe('strangers', () => {
  test('get an address for ten minutes and the loader, where the site is open to them', async () => {
    const answer = await ask({ mac: STRANGER, options: pxe(0x07) })
    expect(answer).toMatchObject({ file: 'snponly.efi', options: { 51: '00000258' } })
    expect(answer.yiaddr).toMatch(/^10\.77\.250\.\d+$/)
  })

  test('get no answer at all where it is not', async () => {
    await served.apply(site({ discover: false }))
    const [stranger, node] = await client.ask([{ mac: STRANGER, options: pxe(0x07) }, { mac: NODE }])
    expect([stranger, node?.yiaddr]).toEqual([null, '10.77.1.1'])
    await served.apply(site())
  })
})

describe('through a relay', () => {
  test('the answer goes to the relay, with what the relay added', async () => {
    const port = `0104${hex('eth7')}`
    const question = { mac: '52:54:00:00:00:03', giaddr: '10.78.0.254', options: { ...pxe(0x07), 82: port } }
    const [answer] = await relay.ask([question], '10.77.0.1')
    expect(answer).toMatchObject({
      yiaddr: '10.78.1.3',
      giaddr: '10.78.0.254',
      file: 'snponly.efi',
      options: { 82: port, 1: 'ffff0000', 3: '0a4e00fe', 6: '0a4d0001', 15: hex('far.example') },
    })
  })

  test("a real client gets its address through ISC's relay", async () => {
    await far.ip('link set dev eth0 address 52:54:00:00:00:03')
    const { promise: isListening, resolve: listening } = Promise.withResolvers<void>()
    await using _ = await relay.start('dhcrelay', ['-4', '-d', '-a', '-iu', 'eth0', '-id', 'eth1', '10.77.0.1'], {
      onLine: line => void (line.startsWith('Sending on') && listening()),
    })
    await isListening
    const script = join(dir, 'udhcpc')
    await writeFile(script, '#!/bin/sh\n[ "$1" != bound ] || echo "$ip $mask $router $dns $domain"\n', { mode: 0o755 })
    const said = await far.run('busybox', [
      'udhcpc',
      '-i',
      'eth0',
      '-f',
      '-q',
      '-n',
      '-t',
      '60',
      '-T',
      '1',
      '-s',
      script,
    ])
    expect(said).toContain('10.78.1.3 16 10.78.0.254 10.77.0.1 far.example')
  })
})

const nodeAt = (place: string) => (place === 'sw2 eth1' ? { node: 'n007' } : undefined)

describe('what switches say of a machine that boots', () => {
  const FIRMWARE = '52:54:00:00:00:07'
  const CISCO = '010600040064010302080006001b2c334455'
  const requests: RelayedRequest[] = []
  let recorder: Recorder
  let store: Store

  /** Listens on the boot server, beside dnsmasq, and hands on what it hears as a boot server does. */
  beforeAll(async () => {
    store = await keep(openSqliteStore(join(dir, 'state.db')))
    const switches = {
      sw1: { circuit: 'cisco', remote: '00:1b:2c:33:44:55', port: '{{ port }}' },
      sw2: { circuit: 'linux', relay: '10.78.0.254' },
    }
    recorder = await Recorder.load(store, {
      isNode: () => true,
      site: () => ({ switches, at: nodeAt, isFixed: () => false }),
    })
    const { promise: isListening, resolve: listening } = Promise.withResolvers<void>()
    const program = new URL('../../src/boot/dhcp/fixtures/listen.ts', import.meta.url).pathname
    await keep(
      server.start(process.execPath, [program], {
        onLine: line => {
          const said = JSON.parse(line) as RelayedRequest & { listening?: true; at: string }
          if (said.listening === true) listening()
          else {
            requests.push(said)
            void recorder.take({ sightings: [{ kind: 'relayed', server: '10.77.0.1', ...said }], heard: '' })
          }
        },
      }),
    )
    await isListening
  })

  const placed = (mac: string) =>
    until(
      () => store.get(`place/${mac}`),
      entry => entry !== undefined,
    ).then(entry => JSON.parse(entry?.value ?? '') as Place)

  test("ISC's relay adds its interface: the machine is at the place of a node", async () => {
    await far.ip(`link set dev eth0 address ${FIRMWARE}`)
    const { promise: isListening, resolve: listening } = Promise.withResolvers<void>()
    await using _ = await relay.start('dhcrelay', ['-4', '-d', '-a', '-iu', 'eth0', '-id', 'eth1', '10.77.0.1'], {
      onLine: line => void (line.startsWith('Sending on') && listening()),
    })
    await isListening
    const asks = ['udhcpc', '-i', 'eth0', '-f', '-q', '-n', '-t', '60', '-T', '1', '-s', '/bin/true']
    await far.run('busybox', [...asks, '-V', 'PXEClient:Arch:00007:UNDI:003001'])
    expect(await placed(FIRMWARE)).toMatchObject({ switch: 'sw2', port: 'eth1', source: 'option 82' })
    expect(requests.filter(({ mac }) => mac === FIRMWARE)).toEqual([
      { mac: FIRMWARE, circuit: hex('eth1'), relay: '10.78.0.254', at: expect.any(String) as string },
    ])
    const [event] = await store.events({ after: 0, kind: 'machine.placed' })
    expect(event).toMatchObject({ nodes: 'n007', data: { mac: FIRMWARE, place: 'sw2 eth1', source: 'option 82' } })
  })

  test('all of a long option is read, which dnsmasq gives back as it came', async () => {
    const mac = '52:54:00:00:00:08'
    const question = { mac, giaddr: '10.78.0.253', options: { ...pxe(0x07), 82: CISCO } }
    await relay.ip('address add 10.78.0.253/16 dev eth1')
    const [answer] = await relay.ask([question], '10.77.0.1')
    expect(answer?.options).toMatchObject({ 82: CISCO })
    expect(await placed(mac)).toMatchObject({ switch: 'sw1', port: '3', source: 'option 82' })
  })

  test('of what does not boot nothing is learnt', async () => {
    const [controller, machine] = ['52:54:00:00:00:bc', '52:54:00:00:00:09']
    const through = { giaddr: '10.78.0.254', options: { 82: `0104${hex('eth1')}` } }
    const boots = { ...through, options: { ...pxe(0x07), ...through.options } }
    await relay.ask([{ mac: controller, ...through }], '10.77.0.1')
    await relay.ask([{ mac: machine, ...boots }], '10.77.0.1')
    await placed(machine)
    expect(await store.get(`place/${controller}`)).toBeUndefined()
  })
})

describe('loaders and names', () => {
  test.each(['undionly.kpxe', 'snponly.efi', 'ipxe.efi'])('%s comes by TFTP', async file => {
    expect(await fetched(file)).toBe(await onDisk(`/usr/lib/ipxe/${file}`))
  })

  test("the site's own loader takes the place of Debian's", async () => {
    const own = join(dir, 'own.efi')
    await writeFile(own, 'a loader of our own')
    await served.apply(site({ loaders: { efi64: own } }))
    expect(await fetched('snponly.efi')).toBe(await onDisk(own))
    await served.apply(site())
  })

  test('autoexec.ipxe is beside them', async () => {
    expect(await client.run('curl', ['-sS', 'tftp://10.77.0.1/autoexec.ipxe'])).toBe('#!ipxe\necho hello\n')
  })

  test('names of nodes, both ways; what is not ours is refused', async () => {
    const ours = ['n001.cluster.example', 'n001-ib.cluster.example', 'n001', '10.77.1.1', '10.80.1.1']
    expect(await client.resolve('10.77.0.1', ...ours)).toEqual([
      ['10.77.1.1'],
      ['10.80.1.1'],
      ['10.77.1.1'],
      ['n001.cluster.example'],
      ['n001-ib.cluster.example'],
    ])
    const others = ['n009.cluster.example', '10.77.9.9', 'n009', 'elsewhere.example']
    expect(await client.resolve('10.77.0.1', ...others)).toEqual([
      ['ENOTFOUND'],
      ['ENOTFOUND'],
      ['ENOTFOUND'],
      ['EREFUSED'],
    ])
  })

  test('what is not ours is asked elsewhere, what is ours never', async () => {
    const config = join(dir, 'upstream.conf')
    await writeFile(config, '')
    const answers = ['elsewhere.example', 'cluster.example', '9.9.77.10.in-addr.arpa']
    await using _ = await relay.start('setpriv', [
      '--pdeathsig=KILL',
      'dnsmasq',
      '--keep-in-foreground',
      `--conf-file=${config}`,
      '--pid-file=',
      '--user=root',
      '--listen-address=10.77.0.254',
      '--bind-interfaces',
      '--no-resolv',
      '--no-hosts',
      ...answers.map(name => `--address=/${name}/192.0.2.7`),
    ])
    await served.apply(site({ forwarders: ['10.77.0.254'] }))
    const [elsewhere] = await until(
      () => client.resolve('10.77.0.1', 'elsewhere.example'),
      ([found]) => found?.[0] === '192.0.2.7',
    )
    expect(elsewhere).toEqual(['192.0.2.7'])
    expect(await client.resolve('10.77.0.1', 'n009.cluster.example', '10.77.9.9')).toEqual([
      ['ENOTFOUND'],
      ['ENOTFOUND'],
    ])
    await served.apply(site())
  })
})

describe('changes of nodes', () => {
  test('one more is noticed by the dnsmasq that runs', async () => {
    const before = await pids()
    await served.apply(site({ hosts: [...site().hosts, sampleHost(4)] }))
    expect(await addressOf('52:54:00:00:00:04')).toBe('10.77.1.4')
    expect(await client.resolve('10.77.0.1', 'n004.cluster.example')).toEqual([['10.77.1.4']])
    expect(await pids()).toEqual(before)
  })

  test('another address and one less: another dnsmasq takes over', async () => {
    const [addresses, names] = await pids()
    await served.apply(site({ hosts: [...site().hosts, sampleHost(4, { address: '10.77.1.40' })] }))
    expect(await addressOf('52:54:00:00:00:04')).toBe('10.77.1.40')
    expect(await client.resolve('10.77.0.1', 'n004.cluster.example', '10.77.1.4')).toEqual([
      ['10.77.1.40'],
      ['ENOTFOUND'],
    ])
    await served.apply(site())
    expect(await addressOf('52:54:00:00:00:04')).toMatch(/^10\.77\.250\./)
    expect(await client.resolve('10.77.0.1', 'n004.cluster.example')).toEqual([['ENOTFOUND']])

    expect(await served.state()).toMatchObject([
      { name: 'addresses', running: true, restarts: 0 },
      { name: 'names', running: true, restarts: 0, pid: names },
    ])
    expect(isRunning(addresses ?? 0)).toBe(false)
  })

  test('a stranger keeps its address meanwhile, and becomes a node with it', async () => {
    const { yiaddr = '' } = await ask({ mac: STRANGER })
    await ask({ mac: STRANGER, message: 'request', requested: yiaddr, server: '10.77.0.1' })
    await until(
      async () => served.sightings,
      list => list.some(({ mac, kind }) => mac === STRANGER && kind === 'ack'),
    )
    await served.apply(site({ hosts: [sampleHost(1)] }))
    expect(await readFile(join(dir, 'strangers'), 'utf8')).toContain(`${STRANGER},${yiaddr},10m\n`)
    expect(await ask({ mac: STRANGER })).toMatchObject({ yiaddr, options: { 51: '00000258' } })
    await served.apply(site({ hosts: [sampleHost(1), sampleHost(5, { macs: [STRANGER], address: yiaddr })] }))
    expect(await ask({ mac: STRANGER })).toMatchObject({ yiaddr, options: { 51: '00000e10' } })
    await served.apply(site())
  })

  test('two that hold their addresses change places', async () => {
    const request = { message: 'request', server: '10.77.0.1' } as const
    expect(await ask({ ...request, mac: NODE, requested: '10.77.1.1' })).toMatchObject({ options: { 53: '05' } })
    expect(await ask({ ...request, mac: BOOTS_NOT, requested: '10.77.1.2' })).toMatchObject({ options: { 53: '05' } })
    const hosts = [sampleHost(1, { address: '10.77.1.2' }), sampleHost(2, { address: '10.77.1.1' })]
    await served.apply(site({ hosts }))
    expect([await addressOf(NODE), await addressOf(BOOTS_NOT)]).toEqual(['10.77.1.2', '10.77.1.1'])
    await served.apply(site())
  })

  test('one that renews keeps its address', async () => {
    await client.ip('address add 10.77.1.1/16 dev eth0')
    const [answer] = await client.ask([{ mac: NODE, message: 'request', ciaddr: '10.77.1.1' }], '10.77.0.1')
    expect(answer).toMatchObject({ yiaddr: '10.77.1.1', options: { 53: '05' } })
    await client.ip('address delete 10.77.1.1/16 dev eth0')
  })

  test('each DHCP packet of a boot is seen', async () => {
    served.sightings.length = 0
    await ask({ mac: NODE, options: pxe(0x07) })
    const seen = await until(
      async () => served.sightings,
      ({ length }) => length >= 2,
    )
    expect(seen.slice(0, 2)).toMatchObject([
      { mac: NODE, kind: 'discover', vendor: 'PXEClient:Arch:00007:UNDI:003001', arch: 7, isFirmware: true },
      {
        mac: NODE,
        kind: 'offer',
        address: '10.77.1.1',
        vendor: 'PXEClient:Arch:00007:UNDI:003001',
        arch: 7,
        isFirmware: true,
      },
    ])
  })
})

describe('when something is wrong', () => {
  test('a configuration that dnsmasq rejects changes nothing', async () => {
    const [before, config] = [await pids(), await readFile(join(dir, 'addresses.conf'), 'utf8')]
    const networks = [{ name: 'prov', cidr: '10.77.0.0/16', gateway: 'banana' }]
    await expect(served.apply(site({ networks, hosts: [] }))).rejects.toThrow(
      /rejects the configuration.*bad IP address at line/s,
    )
    expect(await pids()).toEqual(before)
    expect(await readFile(join(dir, 'addresses.conf'), 'utf8')).toBe(config)
    expect(await ask({ mac: NODE })).toMatchObject({ yiaddr: '10.77.1.1' })
  })

  test('a dnsmasq that is killed comes back, and answers as before', async () => {
    const [addresses = 0, names = 0] = await pids()
    process.kill(addresses, 'SIGKILL')
    process.kill(names, 'SIGKILL')
    await until(
      () => served.state(),
      state => state.every(({ running, restarts }) => running && restarts === 1),
    )
    const state = await served.state()
    expect(state.map(({ lastError }) => lastError?.split('\n')[0])).toEqual(['SIGKILL', 'SIGKILL'])
    expect(await ask({ mac: NODE })).toMatchObject({ yiaddr: '10.77.1.1' })
    const found = await until(
      () => client.resolve('10.77.0.1', 'n001.cluster.example'),
      ([list]) => list?.[0] !== 'ECONNREFUSED',
    )
    expect(found).toEqual([['10.77.1.1']])
  })

  test('when we are killed dnsmasq goes too, and the next of us serves what was there', async () => {
    const before = (await pids()).map(Number)
    served.program.signal('SIGKILL')
    await until(
      async () => before.filter(isRunning),
      running => running.length === 0,
    )
    served = await keep(Served.start(server, dir))
    expect(await ask({ mac: NODE })).toMatchObject({ yiaddr: '10.77.1.1' })
  })

  test('a second one in the same directory is refused', async () => {
    await expect(Served.start(server, dir)).rejects.toThrow(/a dnsmasq \(process \d+\) already runs with/)
  })
})

test('beside another DHCP server only those who boot from us hear from us, and get no address', async () => {
  await served.apply(site({ mode: 'proxy', discover: false }))
  const ipxe = { ...pxe(0x07), 77: hex('iPXE') }
  const questions = [
    { mac: STRANGER, options: pxe(0x07) },
    { mac: BOOTS_NOT, options: pxe(0x07) },
    { mac: NODE },
    { mac: NODE, options: pxe(0x00) },
    { mac: NODE, options: ipxe },
  ]
  const [stranger, bootsNot, plain, bios, script] = await client.ask(questions)
  expect([stranger, bootsNot, plain]).toEqual([null, null, null])
  expect(bios).toMatchObject({ yiaddr: '0.0.0.0', options: { 60: hex('PXEClient') } })
  expect(script).toMatchObject({ yiaddr: '0.0.0.0', file: SCRIPT })
  await served.apply(site())
})

describe('as units of their own', () => {
  test('systemd accepts them, and finds them well enough protected', async () => {
    const unit = new URL('../../contrib/systemd/muster-dnsmasq@.service', import.meta.url)
    const copy = join(dir, 'muster-dnsmasq@names.service')
    await writeFile(copy, await readFile(unit))
    expect((await exec('systemd-analyze', ['verify', '--man=no', copy])).stdout.toString('utf8')).toBe('')
    const rating = await exec('systemd-analyze', ['security', '--offline=true', '--threshold=45', '--no-pager', copy])
    expect(rating.stdout.toString('utf8')).toMatch(
      /Overall exposure level for muster-dnsmasq@names\.service: [0-4]\.\d/,
    )
  })

  test('they are told of changes, and outlive us', async () => {
    await served[Symbol.asyncDispose]()
    const own = (await keep(temporaryDirectory())).path
    const log = join(own, 'journal')
    await writeFile(log, '')
    const external = await keep(Served.start(server, own, { follow: ['tail', '-n', '+1', '-F', log] }))
    await external.apply(site())
    expect(await external.state()).toMatchObject([{ running: false }, { running: false }])

    /** As systemd would. */
    const unit = (name: string): Promise<Program> =>
      server.start('sh', [
        '-c',
        `exec setpriv --pdeathsig=KILL dnsmasq --keep-in-foreground --conf-file=${own}/${name}.conf --pid-file= 2>>${log}`,
      ])
    const names = await keep(unit('names'))
    let addresses = await keep(unit('addresses'))
    const says = (what: string): Promise<string> =>
      until(
        () => readFile(log, 'utf8'),
        text => text.includes(what),
      )
    await says(`read ${own}/reservations`)
    await says(`read ${own}/hosts`)

    await external.apply(site({ hosts: [...site().hosts, sampleHost(4)] }))
    expect((await external.state()).map(({ pid }) => pid)).toEqual([addresses.pid, names.pid])
    await says(`read ${own}/added/1`)
    expect(await ask({ mac: '52:54:00:00:00:04' })).toMatchObject({ yiaddr: '10.77.1.4' })
    await until(
      async () => external.sightings,
      list => list.some(({ mac }) => mac === '52:54:00:00:00:04'),
    )

    // A new configuration: it ends, and systemd starts it again.
    await external.apply(site({ httpPort: 7280 }))
    expect(await addresses.ended).toBe(0)
    addresses = await keep(unit('addresses'))
    await external[Symbol.asyncDispose]()
    expect([isRunning(addresses.pid), isRunning(names.pid)]).toEqual([true, true])
    const answer = await ask({ mac: NODE, options: { ...pxe(0x07), 77: hex('iPXE') } })
    expect(answer.file).toBe('http://10.77.0.1:7280/boot.ipxe')
  })
})
