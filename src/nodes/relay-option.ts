import {
  type CircuitForm,
  type CircuitParts,
  fillPattern,
  isCircuitForm,
  matchPattern,
} from '../site/circuit-pattern.ts'
import type { Switch } from '../site/switches.ts'

/**
 * What a switch says of the port a DHCP request came in by: option 82 (RFC 3046), the bytes of its sub-options in hex. What they
 * mean is the vendor's to say; the site says whose form a switch uses.
 */
export interface RelayOption {
  readonly circuit?: string | undefined
  readonly remote?: string | undefined
  /** Address of the relay (giaddr); absent where a switch adds the option and relays nothing. */
  readonly relay?: string | undefined
}

type Declared = Pick<Switch, 'remote' | 'circuit' | 'port' | 'relay'>

/** Sub-options 1 and 2; undefined where the bytes are not what RFC 3046 says. */
export function readRelayOption(bytes: Buffer): Pick<RelayOption, 'circuit' | 'remote'> | undefined {
  const found = new Map<number, string>()
  for (let at = 0; at < bytes.length;) {
    const [code, length] = [bytes[at], bytes[at + 1]]
    if (code === undefined || length === undefined || at + 2 + length > bytes.length) return undefined
    if (!found.has(code)) found.set(code, bytes.toString('hex', at + 2, at + 2 + length))
    at += 2 + length
  }
  const [circuit, remote] = [found.get(1), found.get(2)]
  return { ...(circuit !== undefined && { circuit }), ...(remote !== undefined && { remote }) }
}

/**
 * The port that the option means. Undefined where no switch of the site sends such an option, or more than one might: a place
 * that is not certain is none. A switch is known by all it declares: remote id, address, or both.
 */
export function placeOfRelay(
  option: RelayOption,
  switches: Readonly<Record<string, Declared>>,
): { switch: string; port: string } | undefined {
  const senders = Object.entries(switches).filter(([name, declared]) => isSender(option, name, declared))
  const [sender] = senders
  if (sender === undefined || senders.length > 1 || option.circuit === undefined) return undefined
  const [name, declared] = sender
  const port = portOf(Buffer.from(option.circuit, 'hex'), declared)
  return port === undefined ? undefined : { switch: name, port }
}

function isSender(option: RelayOption, name: string, { circuit, relay, remote }: Declared): boolean {
  if (circuit === undefined) return false
  if (relay !== undefined && relay !== option.relay) return false
  // One that is known by its address need not say who it is: dhcrelay does not.
  if (relay !== undefined && remote === undefined) return true
  return option.remote !== undefined && isRemote(Buffer.from(option.remote, 'hex'), remote ?? name)
}

/** As it stands, or behind a type and a length as Cisco writes it: 00 06 MAC, 01 LENGTH TEXT. */
function isRemote(bytes: Buffer, declared: string): boolean {
  const wanted = [Buffer.from(declared, 'utf8')]
  const digits = declared.replace(/^0x/i, '').replaceAll(/[:.-]/g, '')
  if (/^([0-9a-f]{2})+$/i.test(digits)) wanted.push(Buffer.from(digits, 'hex'))
  const inside = unwrapped(bytes)
  return wanted.some(one => one.equals(bytes) || (inside !== undefined && one.equals(inside)))
}

function portOf(circuit: Buffer, declared: Declared): string | undefined {
  const parts = partsOf(circuit, declared.circuit ?? 'text')
  if (parts === undefined) return undefined
  const port = declared.port === undefined ? (parts.name ?? parts.port) : fillPattern(declared.port, parts)
  return port !== undefined && /^[\x20-\x7e]{1,128}$/.test(port) ? port : undefined
}

/** `name` is what the port is called where the site does not say how to call it. */
type Parts = CircuitParts & { readonly name?: string }
type Reader = (circuit: Buffer) => Parts | undefined

function partsOf(circuit: Buffer, form: string): Parts | undefined {
  if (!isCircuitForm(form)) {
    const text = textOf(circuit)
    return text === undefined ? undefined : matchPattern(form, text)
  }
  for (const read of FORMS[form]) {
    const parts = read(circuit)
    if (parts !== undefined) return parts
  }
  return undefined
}

/** 00 04 VLAN(2) MODULE PORT: Cisco's vlan-mod-port, which many others write too. Ports of a stack differ in the module. */
const vlanModulePort: Reader = bytes =>
  hasFour(bytes)
    ? {
        vlan: String(bytes.readUInt16BE(2)),
        module: String(bytes[4]),
        port: String(bytes[5]),
        name: `${bytes[4]}/${bytes[5]}`,
      }
    : undefined

/** 00 04 VLAN(2) PORT(2): HPE's Comware. */
const vlanPort: Reader = bytes =>
  hasFour(bytes) ? { vlan: String(bytes.readUInt16BE(2)), port: String(bytes.readUInt16BE(4)) } : undefined

const hasFour = (bytes: Buffer): boolean => bytes.length === 6 && bytes.readUInt16BE(0) === 4

/** The number of the port, as ProCurve and Aruba write it. */
const portNumber: Reader = bytes =>
  [1, 2, 4].includes(bytes.length) ? { port: String(bytes.readUIntBE(0, bytes.length)) } : undefined

/** Ethernet1/1, ge-0/0/7.0:prov, ethernet1/1/3:100: an interface, maybe its unit, maybe a VLAN by number or name. */
const interfaceName: Reader = bytes => {
  const [, port, vlan] = /^([^:]+?)(?:\.\d+)?(?::(.*))?$/.exec(textOf(bytes) ?? '') ?? []
  return port === undefined ? undefined : { port, ...(vlan !== undefined && { vlan }) }
}

const wholeText: Reader = bytes => {
  const port = textOf(bytes)
  return port === undefined ? undefined : { port }
}

/** Tried in this order. */
const FORMS: Readonly<Record<CircuitForm, readonly Reader[]>> = {
  arista: [vlanModulePort, interfaceName],
  cisco: [vlanModulePort, wholeText],
  dell: [vlanModulePort, interfaceName],
  hp: [vlanPort, portNumber, interfaceName],
  juniper: [interfaceName],
  // dhcrelay writes the name of the interface that the request came in by.
  linux: [wholeText],
  text: [wholeText],
}

/** What stands behind a type and a length. */
const unwrapped = (bytes: Buffer): Buffer | undefined =>
  bytes.length > 2 && (bytes[0] ?? 255) <= 1 && bytes[1] === bytes.length - 2 ? bytes.subarray(2) : undefined

function textOf(bytes: Buffer): string | undefined {
  const text = (unwrapped(bytes) ?? bytes).toString('latin1').replace(/\0+$/, '').trim()
  return /^[\x20-\x7e]{1,255}$/.test(text) ? text : undefined
}
