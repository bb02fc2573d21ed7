import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { contains, parseNetwork } from '../lib/ip.ts'
import type { Provision } from '../site/schema.ts'
import type { DhcpDesired, DhcpHost, DhcpNetwork } from './dhcp/desired.ts'
import { firstScript } from './ipxe.ts'
import { type ViewIndex, isServed } from './index-view.ts'
import type { BootView } from './view.ts'

/** The addresses of this machine on which it is a boot server of the site. */
export function ownAddresses(view: BootView, here: readonly string[] = addressesHere()): string[] {
  const { servers } = view.settings.provision
  if (servers !== undefined) return servers.filter(server => here.includes(server))
  const ranges = Object.values(view.settings.networks).flatMap(({ cidr }) => parseNetwork(cidr) ?? [])
  return here.filter(address => ranges.some(range => contains(range, address)))
}

const addressesHere = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap(list => list ?? [])
    .filter(({ family, internal }) => family === 'IPv4' && !internal)
    .map(({ address }) => address)

/** Where nodes find boot servers: those the site names, or else this one; the one that was asked comes first. */
export function serverUrls(view: BootView, own: readonly string[], asked?: string): [string, ...string[]] {
  const { servers, port } = view.settings.provision
  const all = servers ?? own
  const ordered = asked === undefined || !all.includes(asked) ? all : [asked, ...all.filter(one => one !== asked)]
  const [first = asked ?? '127.0.0.1', ...others] = ordered
  return [`http://${first}:${port}`, ...others.map(address => `http://${address}:${port}`)]
}

/** What the service that gives out addresses and names is to do. */
export function dhcpDesired(index: ViewIndex, own: readonly string[], filesDir?: string): DhcpDesired {
  const { view } = index
  const { provision } = view.settings
  const served = Object.entries(view.settings.networks).filter(([name]) => isServed(view, name, own))
  const names = new Set(served.map(([name]) => name))
  return {
    servers: provision.servers ?? own,
    own,
    httpPort: provision.port,
    domain: commonDomain(view),
    networks: served.map(([name, { cidr, gateway, unknown, domain, vlan }]): DhcpNetwork => ({
      name,
      cidr,
      ...(gateway !== undefined && { gateway }),
      ...(unknown !== undefined && { unknown }),
      ...(domain !== undefined && { domain }),
      ...(vlan !== undefined && { vlan }),
    })),
    hosts: [...hostsOf(index, names)],
    forwarders: provision.dns,
    discover: provision.unknown === 'discover',
    mode: provision.dhcp === 'proxy' ? 'proxy' : 'server',
    autoexec: firstScript({ urls: serverUrls(view, own) }, provision.vlan),
    loaders: filesDir === undefined ? {} : loadersIn(filesDir, provision.loaders),
  }
}

function* hostsOf(index: ViewIndex, served: ReadonlySet<string>): Generator<DhcpHost> {
  const learnt = new Map<string, string[]>()
  for (const [mac, machine] of index.machines()) {
    const key = `${machine.node.name} ${machine.interface?.name ?? ''}`
    learnt.set(key, [...(learnt.get(key) ?? []), mac])
  }
  for (const node of index.view.nodes) {
    const primary =
      node.interfaces.find(one => one.address !== undefined && served.has(one.network)) ??
      node.interfaces.find(one => one.address !== undefined)
    for (const one of node.interfaces) {
      if (one.address === undefined) continue
      yield {
        name: node.name,
        domain: node.domain ?? '',
        network: one.network,
        macs: learnt.get(`${node.name} ${one.name}`) ?? [],
        address: one.address,
        boots: node.from === 'network',
        primary: one === primary,
      }
    }
  }
}

/** The site's own loaders, where its files are at hand. */
const loadersIn = (dir: string, loaders: Provision['loaders']): DhcpDesired['loaders'] =>
  Object.fromEntries(
    Object.entries(loaders).flatMap(([kind, path]) => (path === undefined ? [] : [[kind, join(dir, path)]])),
  )

/** The domain most nodes are in: what machines without one of their own search. */
function commonDomain(view: BootView): string {
  const counts = new Map<string, number>()
  for (const { domain } of view.nodes) if (domain !== undefined) counts.set(domain, (counts.get(domain) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? ''
}
