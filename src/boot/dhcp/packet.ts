/** DHCP packets (RFC 2131), as far as we write and read any ourselves. */
export interface DhcpPacket {
  /** 1 is a request, 2 a reply. */
  readonly op: 1 | 2
  readonly id: number
  readonly mac: string
  /** Whether the reply is to be sent to everybody, for clients that have no address yet. */
  readonly broadcast?: boolean
  readonly ciaddr?: string
  readonly yiaddr?: string
  /** The next server: where a boot file is fetched from. */
  readonly siaddr?: string
  /** The relay it came through. */
  readonly giaddr?: string
  readonly file?: string
  readonly options: ReadonlyMap<number, Buffer>
}

export const OPTION = {
  requestedAddress: 50,
  messageType: 53,
  serverId: 54,
  parameters: 55,
  vendorClass: 60,
  userClass: 77,
  relayAgent: 82,
  arch: 93,
  ipxe: 175,
} as const

export const MESSAGE = { discover: 1, offer: 2, request: 3, ack: 5, nak: 6, release: 7 } as const

const HEADER = 236
const COOKIE = Buffer.from([99, 130, 83, 99])
const END = 255

export const addressBytes = (address: string): Buffer => Buffer.from(address.split('.').map(Number))
export const bytesAddress = (bytes: Uint8Array): string => bytes.join('.')

export function writePacket(packet: DhcpPacket): Buffer {
  const header = Buffer.alloc(HEADER)
  header.set([packet.op, 1, 6, 0])
  header.writeUInt32BE(packet.id, 4)
  header.writeUInt16BE(packet.broadcast === true ? 0x8000 : 0, 10)
  for (const [at, address] of [packet.ciaddr, packet.yiaddr, packet.siaddr, packet.giaddr].entries())
    if (address !== undefined) header.set(addressBytes(address), 12 + 4 * at)
  header.set(Buffer.from(packet.mac.replaceAll(':', ''), 'hex'), 28)
  header.write(packet.file ?? '', 108, 'latin1')
  const options = [...packet.options].map(([code, value]) => Buffer.concat([Buffer.from([code, value.length]), value]))
  return Buffer.concat([header, COOKIE, ...options, Buffer.from([END])])
}

/** Undefined for what is none. */
export function readPacket(bytes: Buffer): DhcpPacket | undefined {
  const op = bytes[0]
  if (bytes.length < HEADER + COOKIE.length || (op !== 1 && op !== 2)) return undefined
  if (!bytes.subarray(HEADER, HEADER + COOKIE.length).equals(COOKIE)) return undefined
  const address = (at: number): string => bytesAddress(bytes.subarray(at, at + 4))
  return {
    op,
    id: bytes.readUInt32BE(4),
    mac: bytes.toString('hex', 28, 34).replaceAll(/..(?!$)/g, '$&:'),
    broadcast: (bytes.readUInt16BE(10) & 0x8000) !== 0,
    ciaddr: address(12),
    yiaddr: address(16),
    siaddr: address(20),
    giaddr: address(24),
    file: bytes.toString('latin1', 108, 236).replace(/\0.*$/s, ''),
    options: readOptions(bytes.subarray(HEADER + COOKIE.length)),
  }
}

function readOptions(bytes: Buffer): Map<number, Buffer> {
  const options = new Map<number, Buffer>()
  for (let at = 0; at < bytes.length;) {
    const code = bytes[at] ?? END
    if (code === END) break
    if (code === 0) {
      at += 1
      continue
    }
    const length = bytes[at + 1] ?? 0
    options.set(code, bytes.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return options
}
