import type { Facts } from './facts.ts'
import { type LearntGroup, sorted } from './learnt.ts'

/** From here on ports are given to whoever asks for any (ip_local_port_range). */
const FIRST_OF_ANY = 32_768
/** DHCP clients: in a container there is nobody to ask for an address. */
const CLIENTS = new Set(['udp:68', 'udp6:546'])
/** Displays that ssh forwards. */
const isDisplay = (port: number): boolean => port >= 6000 && port <= 6063

/** Any address, or this machine itself, in the words of 32 bits of /proc/net; others a container does not have. */
const EVERYWHERE = /^0+$/
const LOCAL = /^([0-9A-F]{6}7F|0{24}01000000)$/

/** What others, or programs of the machine itself, can connect to. */
export function learnPorts(facts: Facts): LearntGroup {
  const checks = facts.socket.flatMap(([protocol = '', place = '']) => {
    const [, address = '', hex = ''] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(place) ?? []
    const port = Number.parseInt(hex, 16)
    const name = `${protocol}:${port}`
    const isLocal = LOCAL.test(address)
    if (!/^(tcp|udp)6?$/.test(protocol) || !(port > 0 && port < FIRST_OF_ANY) || CLIENTS.has(name)) return []
    if (!(EVERYWHERE.test(address) || isLocal) || (isLocal && isDisplay(port))) return []
    return [{ name, attributes: { listening: true } }]
  })
  return {
    topic: 'port',
    kind: 'port',
    comment: 'Ports somebody was listening on, at any address or at that of the machine itself.',
    checks: sorted(checks),
  }
}
