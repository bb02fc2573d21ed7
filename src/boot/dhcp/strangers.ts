import type { DhcpDesired, DhcpSighting } from './desired.ts'

/** Strangers stay for as long as it takes to look at them. */
export const STRANGERS_LEASE = '10m'
const LEASE_MILLISECONDS = 600_000

/**
 * Which stranger has which address. dnsmasq forgets its leases when another one takes over; nodes simply get the
 * address that is theirs again, but a stranger's could be given to somebody else meanwhile, so it is told about those.
 */
export class Strangers {
  readonly #held = new Map<string, { readonly mac: string; readonly until: number }>()

  /** An address was given to somebody who is no node. */
  saw({ mac, address, at }: DhcpSighting): void {
    if (address !== undefined) this.#held.set(address, { mac, until: at.getTime() + LEASE_MILLISECONDS })
  }

  /** As reservations, for those who still have theirs and have not become nodes. */
  lines({ discover, mode, hosts }: DhcpDesired, now: number): string[] {
    for (const [address, { until }] of this.#held) if (until <= now) this.#held.delete(address)
    if (!discover || mode !== 'server' || this.#held.size === 0) return []
    const known = new Set(hosts.flatMap(({ macs, address }) => [address, ...macs.map(mac => mac.toLowerCase())]))
    // Who came back for another address has only the last one.
    const latest = new Map([...this.#held].map(([address, { mac }]) => [mac, address]))
    return [...latest].flatMap(([mac, address]) =>
      known.has(mac) || known.has(address) ? [] : [`${mac},${address},${STRANGERS_LEASE}`],
    )
  }
}
