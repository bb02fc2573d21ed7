import { type Socket, createSocket } from 'node:dgram'
import { MESSAGE, OPTION, addressBytes, writePacket } from './packet.ts'

export interface Lease {
  readonly mac: string
  readonly address: string
  /** The address of ours that it was given from. */
  readonly server: string
}

const SERVER_PORT = 67

/**
 * Gives leases back in the name of their holders. A reservation needs none: its address is nobody else's, and whoever renews
 * is simply given it again (dhcp-authoritative). But dnsmasq walks over all leases at every packet, and looks up each of them
 * among all reservations whenever these change: with 20,000 of each it answered nobody for 12 seconds.
 */
export class LeaseReturns implements Disposable {
  #socket: Socket | undefined
  #count = 0

  return(lease: Lease): void {
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
    // One that gets lost is given back at the next renewal, or expires.
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
