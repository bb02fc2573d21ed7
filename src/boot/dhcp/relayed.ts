import { type RelayOption, readRelayOption } from '../../nodes/relay-option.ts'

/** A machine that boots, and what the switch added to its DHCP request. */
export interface RelayedRequest extends RelayOption {
  readonly mac: string
}

/**
 * Requests as they arrive, of clients that have no address yet; of what comes in, not of what we send. dnsmasq logs only the first
 * 14 bytes of option 82 and not the relay's address; a script of its own would be a process for every lease; and a file it dumps
 * packets to would stop it when nobody reads. Whoever listens beside it can do it no harm.
 */
const FILTER = 'inbound and udp dst port 67 and udp[8] = 1 and udp[20:4] = 0'
export const LISTENER: readonly [command: string, ...args: string[]] = [
  'setpriv',
  '--pdeathsig=TERM',
  'tcpdump',
  // It needs no other user: it could not change to one within the limits of a unit.
  '-Z',
  'root',
  '-i',
  'any',
  '-nnlqtx',
  '-s',
  '1500',
  FILTER,
]

/**
 * Reads what tcpdump prints with -x: a line about each packet, and its bytes from the IP header on.
 *
 *     eth0  In  IP 10.78.0.254.67 > 10.77.0.1.67: UDP, length 264
 *     	0x0000:  4500 0124 8fa7 4000 4011 9489 0a4d 00fe
 */
export class RelayedReader {
  readonly #onRequest: (request: RelayedRequest) => void
  #hex = ''
  #isWhole = true

  constructor(onRequest: (request: RelayedRequest) => void) {
    this.#onRequest = onRequest
  }

  line(line: string): void {
    const [, words] = HEX.exec(line) ?? []
    if (words === undefined) {
      this.#hex = ''
      this.#isWhole = false
      return
    }
    if (this.#isWhole) return
    this.#hex += words.replaceAll(' ', '')
    // Its own length, so that the last line is known to be the last.
    const length = Number.parseInt(this.#hex.slice(4, 8), 16)
    if (this.#hex.length < 2 * length && this.#hex.length < MOST) return
    this.#isWhole = true
    const request = readRequest(Buffer.from(this.#hex, 'hex').subarray(0, length))
    if (request !== undefined) this.#onRequest(request)
  }
}

const HEX = /^\t0x[0-9a-f]{4}: {2}((?:[0-9a-f]{2,4} ?){1,8})$/
const MOST = 2 * 1500
const UDP = 17
const BOOTP = 236
const COOKIE = 0x63825363
const OPTION = { vendor: 60, userClass: 77, agent: 82, ipxe: 175 } as const

/**
 * From the IP header on; undefined where it is no request of a machine that boots, or no switch said anything. What does not boot
 * is left out because a management controller may share the port of its machine.
 */
export function readRequest(packet: Buffer): RelayedRequest | undefined {
  const header = 4 * ((packet[0] ?? 0) & 0x0f)
  // A part of a packet that is not the first has no header of UDP's.
  if ((packet[0] ?? 0) >> 4 !== 4 || header < 20 || packet[9] !== UDP || packet.length < header + 8 + BOOTP + 4)
    return undefined
  if ((packet.readUInt16BE(6) & 0x1fff) !== 0) return undefined
  const message = packet.subarray(header + 8)
  if (message[0] !== 1 || message[1] !== 1 || message[2] !== 6 || message.readUInt32BE(BOOTP) !== COOKIE)
    return undefined
  const options = optionsOf(message.subarray(BOOTP + 4))
  const agent = options.get(OPTION.agent)
  const said = agent === undefined || !boots(options) ? undefined : readRelayOption(agent)
  if (said === undefined) return undefined
  const relay = [...message.subarray(24, 28)].join('.')
  return {
    mac: message.toString('hex', 28, 34).replaceAll(/..(?!$)/g, '$&:'),
    ...said,
    ...(relay !== '0.0.0.0' && { relay }),
  }
}

const boots = (options: ReadonlyMap<number, Buffer>): boolean =>
  /^(PXE|HTTP)Client/.test(options.get(OPTION.vendor)?.toString('latin1') ?? '') ||
  options.has(OPTION.ipxe) ||
  options.get(OPTION.userClass)?.includes('iPXE') === true

/** An option that is there twice counts once: that of the relay is the last one (RFC 3046, 2.1), of others it does not matter. */
function optionsOf(bytes: Buffer): Map<number, Buffer> {
  const options = new Map<number, Buffer>()
  for (let at = 0; at < bytes.length;) {
    const code = bytes[at] ?? END
    if (code === END) break
    if (code === PAD) {
      at += 1
      continue
    }
    const length = bytes[at + 1]
    if (length === undefined || at + 2 + length > bytes.length) break
    options.set(code, bytes.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  return options
}

const PAD = 0
const END = 255
