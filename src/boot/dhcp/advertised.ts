import { createHash } from 'node:crypto'
import { addToAddress, type Network } from '../../lib/ip.ts'

export interface Advertised {
  readonly prefix: string
  readonly bits: 64
  /** Of this server in it: dnsmasq only advertises a prefix in which its interface has an address. */
  readonly address: string
}

/**
 * The IPv6 prefix advertised in a network: iPXE waits for a router until it gives up when there is none. A unique local
 * one (RFC 4193) whose 40 bits come from the network, so that every boot server advertises the same.
 */
export function advertised(network: Network, own: string): Advertised {
  const hash = createHash('sha256').update(`muster ${network.base}/${network.bits}`).digest('hex')
  const prefix = `fd${hash.slice(0, 2)}:${hash.slice(2, 6)}:${hash.slice(6, 10)}::`
  const number = own.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  return { prefix: addToAddress(prefix, 0), bits: 64, address: addToAddress(prefix, number) }
}
