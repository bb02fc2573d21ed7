import { type Socket, createSocket } from 'node:dgram'
import { MESSAGE, OPTION, addressBytes, writePacket } from './packet.ts'

export interface Lease {
  readonly mac: string
  readonly address: string
  /** The address of ours that it was given from. */
  readonly server: string
}

/** So many are on their way at once: clients come first. */
const WINDOW = 32
/** As long as clients come one after the other, so many may wait. */
const MOST_WAITING = 1000
/** Milliseconds without a client after which there is time. */
const QUIET = 200
/** What has not been confirmed within so many milliseconds is sent again, so many times. */
const AGAIN = 1000
const TRIES = 3

/**
 * Gives leases back in the name of their holders. A reservation needs none: its address is nobody else's, and whoever renews
 * is simply given it again (dhcp-authoritative). But dnsmasq walks over all leases at every packet, and looks up each of them
 * among all reservations whenever these change: with 20,000 of each it answered nobody for 12 seconds.
 */
export class LeaseReturns implements Disposable {
  readonly #send: (lease: Lease) => void
  readonly #waiting = new Map<string, Lease>()
  readonly #underWay = new Map<string, { readonly lease: Lease; readonly tries: number; readonly since: number }>()
  #lastClient = 0
  #timer: NodeJS.Timeout | undefined

  constructor(send: (lease: Lease) => void) {
    this.#send = send
  }

  add(lease: Lease): void {
    this.#lastClient = Date.now()
    this.#waiting.set(keyOf(lease), lease)
    this.#next()
  }

  /** dnsmasq says that it took it. */
  confirm(lease: Omit<Lease, 'server'>): void {
    if (this.#underWay.delete(keyOf(lease))) this.#next()
  }

  #next(): void {
    const now = Date.now()
    for (const [key, { lease, tries, since }] of this.#underWay) {
      if (now - since < AGAIN) continue
      this.#underWay.delete(key)
      if (tries < TRIES) this.#sendOff(key, lease, tries + 1)
    }
    const hasTime = now - this.#lastClient >= QUIET
    for (const [key, lease] of this.#waiting) {
      if (this.#underWay.size >= WINDOW || !(hasTime || this.#waiting.size > MOST_WAITING)) break
      this.#waiting.delete(key)
      this.#sendOff(key, lease, 1)
    }
    if (this.#waiting.size > 0 || this.#underWay.size > 0) this.#timer ??= setTimeout(() => this.#ring(), QUIET).unref()
  }

  #sendOff(key: string, lease: Lease, tries: number): void {
    this.#underWay.set(key, { lease, tries, since: Date.now() })
    this.#send(lease)
  }

  #ring(): void {
    this.#timer = undefined
    this.#next()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#waiting.clear()
    this.#underWay.clear()
  }
}

const keyOf = ({ mac, address }: Omit<Lease, 'server'>): string => `${mac} ${address}`

const SERVER_PORT = 67

/** Sends what a client would send (RFC 2131, 4.4.6), to a server on this machine. */
export class ReleaseSender implements Disposable {
  #socket: Socket | undefined
  #count = 0

  send(lease: Lease): void {
    this.#socket ??= this.#open()
    this.#count = (this.#count + 1) % 2 ** 32
    const packet = writePacket({
      op: 1,
      id: this.#count,
      mac: lease.mac,
      ciaddr: lease.address,
      options: new Map([
        [OPTION.messageType, Buffer.from([MESSAGE.release])],
        [OPTION.serverId, addressBytes(lease.server)],
      ]),
    })
    // One that gets lost is sent again, or given back at the next renewal, or expires.
    this.#socket.send(packet, SERVER_PORT, lease.server, () => {})
  }

  #open(): Socket {
    const socket = createSocket('udp4')
    socket.on('error', () => {})
    socket.unref()
    return socket
  }

  [Symbol.dispose](): void {
    this.#socket?.close()
    this.#socket = undefined
  }
}
