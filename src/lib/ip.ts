import ipaddr from 'ipaddr.js'

/**
 * Addresses and networks, IPv4 and IPv6 alike.
 *
 *     addToAddress('10.77.1.0', 300)                  → '10.77.2.44'
 *     contains(parseNetwork('10.77.0.0/16'), '10.77.2.44')
 */
export interface Network {
  readonly base: string
  readonly bits: number
  readonly kind: 'ipv4' | 'ipv6'
  readonly first: bigint
  readonly last: bigint
}

const WIDTH = { ipv4: 32, ipv6: 128 } as const

/** Strict dotted decimal or IPv6; no `010.1`, no `1.2`, no zone. */
export function isAddress(text: string): boolean {
  return isIpv4(text) || (text.includes(':') && !text.includes('%') && ipaddr.IPv6.isValid(text))
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/
const isIpv4 = (text: string): boolean => IPV4.test(text) && !text.endsWith('.')

/** The address one would compare and store: lower case, shortest form. */
export function canonicalAddress(text: string): string {
  return isIpv4(text) ? text : ipaddr.IPv6.parse(text).toRFC5952String()
}

export function parseNetwork(cidr: string): Network | undefined {
  const [address = '', bitsText = ''] = cidr.split('/')
  if (cidr.split('/').length !== 2 || !isAddress(address) || !/^\d{1,3}$/.test(bitsText)) return undefined
  const kind = isIpv4(address) ? 'ipv4' : 'ipv6'
  const bits = Number(bitsText)
  if (bits > WIDTH[kind]) return undefined
  const hostBits = BigInt(WIDTH[kind] - bits)
  const first = (toNumber(address) >> hostBits) << hostBits
  return { base: fromNumber(first, kind), bits, kind, first, last: first + (1n << hostBits) - 1n }
}

export function contains(network: Network, address: string): boolean {
  if (network.kind !== (isIpv4(address) ? 'ipv4' : 'ipv6')) return false
  const value = toNumber(address)
  return value >= network.first && value <= network.last
}

export const lastAddress = (network: Network): string => fromNumber(network.last, network.kind)

export function addToAddress(address: string, offset: number): string {
  if (!isAddress(address)) throw new Error(`${JSON.stringify(address)} is not an address`)
  if (!Number.isSafeInteger(offset)) throw new Error(`${offset} is not a whole number`)
  const kind = isIpv4(address) ? 'ipv4' : 'ipv6'
  const value = toNumber(address) + BigInt(offset)
  if (value < 0n || value >= 1n << BigInt(WIDTH[kind])) throw new Error(`${address} + ${offset} is no address any more`)
  return fromNumber(value, kind)
}

function toNumber(address: string): bigint {
  if (isIpv4(address)) {
    const [a = '', b = '', c = '', d = ''] = address.split('.')
    return BigInt(((Number(a) * 256 + Number(b)) * 256 + Number(c)) * 256 + Number(d))
  }
  return ipaddr.IPv6.parse(address).parts.reduce((sum, part) => (sum << 16n) | BigInt(part), 0n)
}

function fromNumber(value: bigint, kind: 'ipv4' | 'ipv6'): string {
  if (kind === 'ipv4') {
    const number = Number(value)
    return [number / 2 ** 24, number / 2 ** 16, number / 2 ** 8, number].map(part => Math.floor(part) % 256).join('.')
  }
  const parts = Array.from({ length: 8 }, (_, index) => Number((value >> BigInt(16 * (7 - index))) & 0xffffn))
  return new ipaddr.IPv6(parts).toRFC5952String()
}
