import type { DhcpDesired, DhcpHost } from '../src/boot/dhcp/desired.ts'
import { Namespace, Served, Switch, temporaryDirectory } from '../src/boot/dhcp/testing.ts'
import { type Bench, against, median } from './figure.ts'

const NODES = 20_000
const SERVER = '10.77.0.1'
/** Exchanges a second, each for so many seconds. */
const RATES = [25, 50, 100, 200, 400, 600, 800, 1000, 1500, 2000]
const PERIOD = 6
/** Of the exchanges begun, how many must have been answered for a rate to count. */
const ENOUGH = 0.99

/**
 * dnsmasq with 20,000 reservations and names: how fast it takes them and changes of them, all nodes having asked for
 * their address before, and how many exchanges (discover, offer, request, acknowledge) it answers, by Kea's perfdhcp.
 */
export const dhcpBench: Bench = async function* () {
  await using lan = await Switch.create()
  await using server = await Namespace.create()
  await using clients = await Namespace.create()
  await lan.plug(server, 'eth0')
  await lan.plug(clients, 'eth0')
  await server.ip(`address add ${SERVER}/16 dev eth0`)
  await clients.ip('address add 10.77.0.2/16 dev eth0')
  await using dir = await temporaryDirectory()
  await using served = await Served.start(server, dir.path, { keepSightings: false })
  const loads: number[] = []
  for (let run = 0; run < 3; run++) {
    await served.apply(desired([]))
    loads.push((await served.apply(desired(hosts(NODES)))) / 1000)
  }
  const load = median(loads)
  yield figure(`load ${NODES} reservations and names into one that runs`, load, 's', against(1, load))

  for (const count of [1000, NODES]) {
    await served.apply(desired(hosts(count)))
    const { rate, delay } = await fastest(clients)
    // On a machine that has no time for it at all there is nothing to tell.
    if (Number.isNaN(rate)) continue
    yield figure(`DHCP exchanges with ${count} reservations: shortest interval kept up with`, 1000 / rate, 'ms')
    yield figure(`DHCP exchanges with ${count} reservations: offer at that rate, mean`, delay, 'ms')
  }

  const changes = {
    'add a node': [...hosts(NODES), host(NODES + 1)],
    'move a node to another address': [...hosts(NODES), { ...host(NODES + 1), address: '10.77.200.1' }],
    'rename a node': [...hosts(NODES), { ...host(NODES + 1), address: '10.77.200.1', name: 'renamed' }],
    'remove a node': hosts(NODES),
  }
  const times = new Map<string, number[]>(Object.keys(changes).map(name => [name, []]))
  for (let run = 0; run < 3; run++)
    for (const [name, list] of Object.entries(changes))
      times.get(name)?.push((await served.apply(desired(list))) / 1000)
  for (const [name, values] of times) {
    const value = median(values)
    yield figure(`${name} of ${NODES}, until clients see it`, value, 's', against(1, value))
  }
}

const figure = (name: string, value: number, unit: 's' | 'ms', limit: object = {}) => ({
  bench: 'dhcp',
  case: name,
  value,
  unit,
  ...limit,
})

/** The highest of the rates at which nearly all exchanges came to their end, and how long an offer took then. */
async function fastest(clients: Namespace): Promise<{ readonly rate: number; readonly delay: number }> {
  let best = { rate: Number.NaN, delay: Number.NaN }
  for (const rate of RATES) {
    const args = ['-4', '-l', 'eth0', '-r', `${rate}`, '-p', `${PERIOD}`, '-R', '1000', '-b', 'mac=52:54:00:00:00:01']
    // It says with exit status 3 that there were drops.
    const report = await clients.run('perfdhcp', [...args, SERVER], { allow: [3] })
    const sent = Number(/sent packets: (\d+)/.exec(report)?.[1])
    const received = Number([...report.matchAll(/received packets: (\d+)/g)].at(-1)?.[1])
    if (!(received / sent >= ENOUGH)) break
    best = { rate, delay: Number(/avg delay: ([\d.]+) ms/.exec(report)?.[1]) }
  }
  return best
}

const hosts = (count: number): DhcpHost[] => Array.from({ length: count }, (_, index) => host(index + 1))

function host(number: number): DhcpHost {
  const name = `n${String(number).padStart(5, '0')}`
  const bytes = [number >> 16, number >> 8, number].map(byte => (byte & 0xff).toString(16).padStart(2, '0'))
  return {
    name,
    domain: 'cluster.example',
    network: 'prov',
    macs: [`52:54:00:${bytes.join(':')}`],
    address: `10.77.${1 + Math.floor(number / 250)}.${1 + (number % 250)}`,
    boots: true,
    primary: true,
  }
}

const desired = (list: readonly DhcpHost[]): DhcpDesired => ({
  servers: [SERVER],
  own: [SERVER],
  httpPort: 7180,
  domain: 'cluster.example',
  networks: [{ name: 'prov', cidr: '10.77.0.0/16', unknown: '10.77.250.0/24' }],
  hosts: list,
  forwarders: [],
  discover: true,
  mode: 'server',
  autoexec: '#!ipxe\n',
  loaders: {},
})
