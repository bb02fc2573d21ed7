import { contains, parseNetwork } from '../lib/ip.ts'
import type { Plain } from './paths.ts'
import type { Network, Provision } from './schema.ts'

/**
 * A node may have many addresses; the one that its plain name stands for is that of the interface it boots from: one in a network
 * that we serve, or else in one that has addresses for strangers, or else the first.
 */
export function mainAddresses({
  networks,
  provision,
}: {
  readonly networks: ReadonlyMap<string, Network>
  readonly provision: Provision
}): (own: Plain) => string | undefined {
  const ranks = new Map([...networks].map(([name, network]) => [name, rankOf(network, provision)]))
  return own => {
    let best: { readonly address: string; readonly rank: number } | undefined
    const interfaces = (own['interfaces'] ?? {}) as Readonly<Record<string, Interface>>
    for (const [name, { network = name, address }] of Object.entries(interfaces)) {
      const rank = ranks.get(network) ?? LAST
      if (address !== undefined && (best === undefined || rank < best.rank)) best = { address, rank }
    }
    return best?.address
  }
}

const LAST = 2

interface Interface {
  readonly network?: string
  readonly address?: string
}

function rankOf({ cidr, dhcp, unknown }: Network, { servers = [] }: Provision): number {
  const range = parseNetwork(cidr)
  const isServed = dhcp ?? (range !== undefined && servers.some(server => contains(range, server)))
  return isServed ? 0 : unknown === undefined ? LAST : 1
}
