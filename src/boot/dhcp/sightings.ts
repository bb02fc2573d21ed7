import type { DhcpSighting } from './desired.ts'

/**
 * Reads what dnsmasq says about each packet, with log-dhcp:
 *
 *     dnsmasq-dhcp[7]: 3598 available DHCP subnet: 10.77.0.0/255.255.0.0
 *     dnsmasq-dhcp[7]: 3598 vendor class: PXEClient:Arch:00007:UNDI:003001
 *     dnsmasq-dhcp[7]: 3598 DHCPDISCOVER(eth1) 52:54:00:00:00:01
 *     dnsmasq-dhcp[7]: 3598 DHCPOFFER(eth1) 10.77.1.1 52:54:00:00:00:01
 *
 * The lines of one packet follow each other. What a client wrote only ever stands behind the words that announce it,
 * and is kept short; dnsmasq has left out what is not printable, but we do not rely on it.
 */
export class SightingReader {
  readonly #onSighting: (sighting: DhcpSighting) => void
  readonly #now: () => Date
  #packet: Packet = { id: '' }

  constructor(onSighting: (sighting: DhcpSighting) => void, now: () => Date = () => new Date()) {
    this.#onSighting = onSighting
    this.#now = now
  }

  line(line: string): void {
    if (!line.startsWith('dnsmasq-dhcp[')) return
    const [, id = '', said = ''] = LINE.exec(line) ?? []
    if (id === '') return
    if (id !== this.#packet.id || said.startsWith('available DHCP ')) this.#packet = { id }
    if (said.startsWith(VENDOR)) this.#packet = { ...this.#packet, vendor: clean(said.slice(VENDOR.length)) }
    else if (said.startsWith(USER)) this.#packet = { ...this.#packet, userClass: clean(said.slice(USER.length)) }
    else this.#message(said)
  }

  #message(said: string): void {
    const [, word = '', address, mac] = MESSAGE.exec(said) ?? []
    const kind = KINDS[word]
    if (kind === undefined || mac === undefined) return
    const { vendor, userClass } = this.#packet
    const arch = /^(?:PXE|HTTP)Client:Arch:(\d{5})(?!\d)/.exec(vendor ?? '')?.[1]
    this.#onSighting({
      mac,
      kind,
      ...(address !== undefined && { address }),
      ...(vendor !== undefined && { vendor }),
      ...(arch !== undefined && { arch: Number(arch) }),
      ...(userClass !== undefined && { userClass }),
      isFirmware: /^(?:PXE|HTTP)Client/.test(vendor ?? '') || userClass?.includes('iPXE') === true,
      at: this.#now(),
    })
  }
}

interface Packet {
  readonly id: string
  readonly vendor?: string
  readonly userClass?: string
}

const LINE = /^dnsmasq-dhcp\[\d{1,10}\]: (\d{1,10}) (.{1,1024})$/
const VENDOR = 'vendor class: '
const USER = 'user class: '
// The name of an interface, maybe an address, the MAC address; what is behind may be words of the client's.
const MESSAGE =
  /^(DHCP[A-Z]{3,8}|PXE)\([^\s()]{1,32}\) (?:(\d{1,3}(?:\.\d{1,3}){3}) )?((?:[0-9a-f]{2}:){5}[0-9a-f]{2})(?: |$)/
const KINDS: Readonly<Record<string, DhcpSighting['kind'] | undefined>> = {
  DHCPDISCOVER: 'discover',
  DHCPOFFER: 'offer',
  DHCPREQUEST: 'request',
  DHCPACK: 'ack',
  DHCPNAK: 'nak',
  // As a proxy it says this instead, and only hears those who want to boot.
  PXE: 'discover',
}

const MOST = 128
const clean = (said: string): string => said.replaceAll(/[^\x20-\x7e]/g, '').slice(0, MOST)
