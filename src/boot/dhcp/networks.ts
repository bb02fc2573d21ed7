import { addToAddress, contains, type Network, parseNetwork } from '../../lib/ip.ts'
import { type Advertised, advertised } from './advertised.ts'
import type { DhcpDesired, DhcpNetwork } from './desired.ts'

/** A network as its clients are to see it. */
export interface NetworkPlan {
  readonly name: string
  readonly network: Network
  readonly netmask: string
  /** The address of ours that its clients are pointed at. */
  readonly own: string
  /** One of our interfaces is in it; else its clients come through a relay. */
  readonly isLocal: boolean
  readonly gateway?: string
  readonly domain: string
  /** Resolvers: ourselves, then the other boot servers. */
  readonly dns: readonly string[]
  /** Ranges for strangers, first and last address. */
  readonly strangers: readonly (readonly [first: string, last: string])[]
  readonly advertised?: Advertised
}

/** resolv.conf takes no more. */
const MOST_RESOLVERS = 3

export function planNetworks(desired: DhcpDesired): NetworkPlan[] {
  return desired.networks.flatMap(one => planNetwork(one, desired) ?? [])
}

function planNetwork(wanted: DhcpNetwork, desired: DhcpDesired): NetworkPlan | undefined {
  const network = parseNetwork(wanted.cidr)
  const own = desired.own.find(address => network !== undefined && contains(network, address)) ?? desired.own[0]
  if (network?.kind !== 'ipv4' || own === undefined) return undefined
  const isLocal = contains(network, own)
  return {
    name: wanted.name,
    network,
    netmask: addToAddress('0.0.0.0', 2 ** 32 - 2 ** (32 - network.bits)),
    own,
    isLocal,
    ...(wanted.gateway !== undefined && { gateway: wanted.gateway }),
    domain: wanted.domain ?? desired.domain,
    dns: [own, ...desired.servers.filter(address => !desired.own.includes(address))].slice(0, MOST_RESOLVERS),
    strangers: desired.discover ? strangersRanges(wanted, network, desired) : [],
    ...(isLocal && desired.advertise !== false && { advertised: advertised(network, own) }),
  }
}

/**
 * Each boot server gives out a share of its own, because none knows whom the others gave what. Only those in the
 * network itself share it; where none is, all do.
 */
function strangersRanges(wanted: DhcpNetwork, network: Network, desired: DhcpDesired): (readonly [string, string])[] {
  const range = wanted.unknown === undefined ? undefined : parseNetwork(wanted.unknown)
  if (range?.kind !== 'ipv4') return []
  // The first and the last address of a network are nobody's.
  const isEdge = (at: bigint): boolean => network.bits < 31 && (at === network.first || at === network.last)
  const first = Number(isEdge(range.first) ? range.first + 1n : range.first)
  const last = Number(isEdge(range.last) ? range.last - 1n : range.last)
  const local = desired.servers.filter(address => contains(network, address))
  const sharing = local.length > 0 ? local : desired.servers
  const size = last - first + 1
  const start = (share: number): number => first + Math.floor((size * share) / sharing.length)
  return sharing.flatMap((server, share) =>
    desired.own.includes(server) && start(share + 1) > start(share)
      ? [[addToAddress('0.0.0.0', start(share)), addToAddress('0.0.0.0', start(share + 1) - 1)] as const]
      : [],
  )
}

/**
 * The zones of reverse names of a network: those on the borders of bytes that cover it. 10.77.0.0/16 → 77.10.in-
 * addr.arpa
 */
export function reverseZones({ network }: NetworkPlan): string[] {
  const bytes = Math.ceil(network.bits / 8)
  const count = 2 ** (8 * bytes - network.bits)
  return Array.from({ length: count }, (_, index) => {
    const address = addToAddress(network.base, index * 2 ** (32 - 8 * bytes))
    return [...address.split('.').slice(0, bytes).toReversed(), 'in-addr.arpa'].join('.')
  })
}
