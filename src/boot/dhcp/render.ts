import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import type { ServedLoader } from '../loaders.ts'
import type { DhcpDesired } from './desired.ts'
import { NO_BOOT } from './hosts.ts'
import { type NetworkPlan, planNetworks, reverseZones } from './networks.ts'
import { STRANGERS_LEASE } from './strangers.ts'
import { dnsName, word } from './words.ts'

/** Where it runs: what is not the site's to say. */
export interface Place {
  readonly dir: string
  /** Our interfaces that bear one of our addresses; none yet is fine. */
  readonly interfaces: readonly string[]
  readonly loaders: readonly ServedLoader[]
}

/** The files of a directory of ours. */
export const filesIn = (dir: string) => ({
  addresses: join(dir, 'addresses.conf'),
  names: join(dir, 'names.conf'),
  reservations: join(dir, 'reservations'),
  strangers: join(dir, 'strangers'),
  added: join(dir, 'added'),
  hosts: join(dir, 'hosts'),
  tftp: join(dir, 'tftp'),
})

export interface Configurations {
  /** DHCP and router advertisements. */
  readonly addresses: string
  /** DNS and TFTP. */
  readonly names: string
}

const LEASE = '1h'

/**
 * The whole configuration, of two dnsmasq: one gives out addresses, one names and loaders. In one process each answer
 * to a DHCP request would walk over the names of all nodes (20,000 of them made it take three times as long), and names
 * and loaders would stand still while reservations are read.
 */
export function renderDnsmasq(desired: DhcpDesired, place: Place): Configurations {
  word(place.dir, 'directory')
  if (desired.own.length === 0)
    throw new MusterError('ADDRESS_UNUSABLE', 'none of the addresses of the boot servers is one of this machine', {
      hint: 'name an address of this machine in provision.servers',
    })
  const networks = planNetworks(desired)
  return {
    addresses: text([
      ...common(desired),
      'port=0',
      // Router advertisements only go out on interfaces that are named.
      ...place.interfaces.map(name => `interface=${word(name, 'interface')}`),
      ...clients(place),
      ...(desired.mode === 'proxy' ? proxy(networks, desired, place) : server(networks, desired, place)),
    ]),
    names: text([
      ...common(desired),
      'port=53',
      'no-resolv',
      'no-hosts',
      'domain-needed',
      'cache-size=10000',
      'dns-forward-max=1000',
      ...ourZones(networks, desired).map(zone => `local=/${zone}/`),
      ...desired.forwarders.map(address => `server=${word(address, 'forwarder')}`),
      `addn-hosts=${filesIn(place.dir).hosts}`,
      'enable-tftp',
      `tftp-root=${filesIn(place.dir).tftp}`,
      'tftp-max=1000',
    ]),
  }
}

const text = (lines: readonly string[]): string =>
  ['# Written by muster: what is changed here is lost.', ...lines, ''].join('\n')

function common(desired: DhcpDesired): string[] {
  return [
    // It may not change to another user: with that it would forget that it is to end with us.
    'user=root',
    'group=root',
    'log-facility=-',
    // Also addresses that are not there yet.
    'bind-dynamic',
    ...desired.own.map(address => `listen-address=${word(address, 'address')}`),
  ]
}

/** What tells clients apart: tags of what they say they are. */
function clients({ loaders }: Place): string[] {
  return [
    'log-dhcp',
    // Firmware, iPXE and the operating system of one machine each have an id of their own.
    'dhcp-ignore-clid',
    'dhcp-match=set:is-ipxe,175',
    'dhcp-userclass=set:is-ipxe,iPXE',
    'dhcp-vendorclass=set:is-pxe,PXEClient',
    'dhcp-vendorclass=set:is-http,HTTPClient',
    ...loaders.flatMap(loader =>
      loader.archs.map(arch => `dhcp-match=set:${tagOf(loader)},option:client-arch,${arch}`),
    ),
  ]
}

const tagOf = ({ platform, over }: ServedLoader): string => `${over}-${platform}`

function server(networks: readonly NetworkPlan[], desired: DhcpDesired, place: Place): string[] {
  const files = filesIn(place.dir)
  const advertised = networks.flatMap(network => network.advertised ?? [])
  return [
    'dhcp-authoritative',
    'no-ping',
    // Names are ours to give: none that a client sends ends up anywhere.
    'dhcp-ignore-names',
    'dhcp-no-override',
    // A reservation needs no memory. A file of leases would be written anew, and waited for until it is on disk, at
    // every single answer.
    'leasefile-ro',
    'dhcp-lease-max=1000000',
    `dhcp-hostsfile=${files.strangers}`,
    `dhcp-hostsfile=${files.reservations}`,
    `dhcp-hostsdir=${files.added}`,
    ...(desired.discover ? [] : ['dhcp-ignore=tag:!known']),
    // iPXE need not wait for a proxy DHCP server.
    'dhcp-option-force=tag:is-ipxe,encap:175,176,1b',
    // Firmware takes the file it is told, and does not go looking for boot servers.
    `dhcp-option-force=tag:is-pxe,tag:!${NO_BOOT},60,PXEClient`,
    `dhcp-option-force=tag:is-pxe,tag:!${NO_BOOT},vendor:PXEClient,6,8b`,
    `dhcp-option-force=tag:is-http,tag:!${NO_BOOT},60,HTTPClient`,
    ...networks.flatMap(network => [
      ...ranges(network),
      ...options(network),
      ...bootFiles(network, desired.httpPort, place.loaders),
    ]),
    ...(advertised.length > 0 ? ['enable-ra', 'ra-param=*,0,0'] : []),
    ...advertised.map(({ prefix, bits }) => `dhcp-range=${prefix},ra-only,${bits},${LEASE}`),
  ]
}

const netTag = (network: NetworkPlan): string => `net-${word(network.name, 'network')}`

function ranges(plan: NetworkPlan): string[] {
  const { network, netmask, strangers } = plan
  return [
    `dhcp-range=set:${netTag(plan)},${network.base},static,${netmask},${LEASE}`,
    // A node never gets an address of the strangers'.
    ...strangers.map(
      ([first, last]) => `dhcp-range=tag:!known,set:${netTag(plan)},${first},${last},${netmask},${STRANGERS_LEASE}`,
    ),
  ]
}

function options(plan: NetworkPlan): string[] {
  const option = `dhcp-option=tag:${netTag(plan)},option`
  return [
    // Without one, dnsmasq would name itself.
    plan.gateway === undefined ? `${option}:router` : `${option}:router,${word(plan.gateway, 'gateway')}`,
    `${option}:dns-server,${plan.dns.map(address => word(address, 'server')).join(',')}`,
    ...(plan.domain === ''
      ? []
      : [
          `${option}:domain-name,${dnsName(plan.domain, plan.name)}`,
          `${option}:domain-search,${dnsName(plan.domain, plan.name)}`,
        ]),
  ]
}

/**
 * One client matches one line at most: iPXE, whatever it came from, always gets its script, so that nothing loads
 * itself.
 */
function bootFiles(plan: NetworkPlan, port: number, loaders: readonly ServedLoader[]): string[] {
  const tags = `tag:${netTag(plan)},tag:!${NO_BOOT}`
  const base = `http://${plan.own}:${port}`
  return [
    `dhcp-boot=${tags},tag:is-ipxe,${base}/boot.ipxe,,${plan.own}`,
    ...loaders.flatMap(loader => {
      const match = `${tags},tag:!is-ipxe,tag:${tagOf(loader)}`
      if (loader.over === 'tftp') return [`dhcp-boot=${match},tag:!is-http,${loader.file},,${plan.own}`]
      const url = `${base}/loader/${loader.file}`
      // As an option as well: some firmware only looks there.
      return [
        `dhcp-boot=${match},tag:is-http,${url},,${plan.own}`,
        `dhcp-option-force=${match},tag:is-http,option:bootfile-name,${url}`,
      ]
    }),
  ]
}

/** Beside the site's own DHCP server: no addresses, only what to boot, and only for those we boot. */
function proxy(networks: readonly NetworkPlan[], desired: DhcpDesired, place: Place): string[] {
  const files = filesIn(place.dir)
  return [
    `dhcp-hostsfile=${files.reservations}`,
    `dhcp-hostsdir=${files.added}`,
    ...(desired.discover ? [] : ['dhcp-ignore=tag:!known']),
    `dhcp-ignore=tag:${NO_BOOT}`,
    ...networks.flatMap(plan => [
      `dhcp-range=set:${netTag(plan)},${plan.network.base},proxy,${plan.netmask}`,
      `dhcp-boot=tag:${netTag(plan)},tag:is-ipxe,http://${plan.own}:${desired.httpPort}/boot.ipxe,,${plan.own}`,
    ]),
    ...place.loaders
      .filter(({ over }) => over === 'tftp')
      .flatMap(({ archs, file }) => archs.map(arch => `pxe-service=tag:!is-ipxe,${arch},"Muster",${file}`)),
  ]
}

/** What nobody else is asked for. */
function ourZones(networks: readonly NetworkPlan[], desired: DhcpDesired): string[] {
  const domains = new Set([desired.domain, ...desired.networks.map(({ domain }) => domain ?? '')])
  for (const { domain } of desired.hosts) domains.add(domain)
  const names = [...domains].filter(domain => domain !== '').map(domain => dnsName(domain, 'domain'))
  return [...new Set([...names.toSorted(), ...networks.flatMap(reverseZones)])]
}
