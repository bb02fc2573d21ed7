import { canonicalAddress } from '../../../lib/ip.ts'
import { linesOf } from '../found.ts'
import { type Observe, gather, shell, targetOf, trouble, unknown } from './look.ts'

export const observePort: Observe = async (subject, check) => {
  const [, protocol = 'tcp', number = ''] = /^(?:(\w+):)?(\d+)$/.exec(targetOf(check)) ?? []
  // Not there at all where the kernel has no IPv6.
  const result = await shell(subject, '[ -e "$1" ] || exit 0; cat "$1"', [`/proc/net/${protocol}`])
  if (result.exitCode !== 0) return unknown(check, trouble(result, 'cat'))
  const ip = listeners(result.stdout.toString('utf8'), protocol)
    .filter(({ port }) => port === Number(number))
    .map(({ address }) => address)
  return gather(check, { listening: ip.length > 0, ip: [...new Set(ip)] })
}

interface Listener {
  readonly address: string
  readonly port: number
}

/** TCP_LISTEN and, for sockets of UDP that are connected to nobody, TCP_CLOSE. */
const LISTENING: Readonly<Record<string, string>> = { tcp: '0A', tcp6: '0A', udp: '07', udp6: '07' }

/** Lines such as `0: 0100007F:0016 00000000:0000 0A …`. */
function listeners(table: string, protocol: string): Listener[] {
  return linesOf(table).flatMap(line => {
    const [, address, port = '', state] = /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /.exec(line) ?? []
    if (address === undefined || state !== LISTENING[protocol]) return []
    return [{ address: addressOf(address), port: Number.parseInt(port, 16) }]
  })
}

/** The kernel prints words of 32 bits as numbers of its own byte order: little-endian on all we boot. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex').swap32()
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16))
  return canonicalAddress(groups.join(':'))
}
