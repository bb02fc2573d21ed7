/** What a switch says of itself and of the port, in the frames it sends every half minute (IEEE 802.1AB). */
export interface Neighbour {
  /** System name, or the chassis id where it has none. */
  readonly switch: string
  readonly port: string
}

const CHASSIS = 1
const PORT = 2
const PORT_DESCRIPTION = 4
const SYSTEM_NAME = 5
const ETHERTYPE = 0x88cc

/** Undefined where the frame is none, is cut off, or names neither switch nor port. */
export function parseLldp(frame: Buffer): Neighbour | undefined {
  const start = payloadStart(frame)
  if (start === undefined) return undefined
  const values = new Map<number, Buffer>()
  for (let at = start; at + 2 <= frame.length;) {
    const header = frame.readUInt16BE(at)
    const [type, length] = [header >> 9, header & 0x1ff]
    if (type === 0) break
    if (at + 2 + length > frame.length) return undefined
    if (!values.has(type)) values.set(type, frame.subarray(at + 2, at + 2 + length))
    at += 2 + length
  }
  const name = text(values.get(SYSTEM_NAME)) ?? id(values.get(CHASSIS), { mac: 4, address: 5 })
  const port = id(values.get(PORT), { mac: 3, address: 4 }) ?? text(values.get(PORT_DESCRIPTION))
  return name === undefined || port === undefined ? undefined : { switch: name, port }
}

function payloadStart(frame: Buffer): number | undefined {
  if (frame.length < 18) return undefined
  // A tag may stand between the addresses and the type.
  if (frame.readUInt16BE(12) === 0x8100) return frame.readUInt16BE(16) === ETHERTYPE ? 18 : undefined
  return frame.readUInt16BE(12) === ETHERTYPE ? 14 : undefined
}

/** An id begins with its subtype: a MAC address, a network address, or text. */
function id(
  value: Buffer | undefined,
  subtype: { readonly mac: number; readonly address: number },
): string | undefined {
  if (value === undefined || value.length < 2) return undefined
  const rest = value.subarray(1)
  if (value[0] === subtype.mac && rest.length === 6) return rest.toString('hex').replaceAll(/(..)(?!$)/g, '$1:')
  if (value[0] === subtype.address && rest.length === 5 && rest[0] === 1) return [...rest.subarray(1)].join('.')
  return text(rest)
}

/** Printable text of a sensible length, or nothing. */
function text(value: Buffer | undefined): string | undefined {
  const found = value?.toString('utf8').replaceAll(/\0+$/g, '').trim()
  return found !== undefined && /^[\x20-\x7e]{1,128}$/.test(found) ? found : undefined
}
