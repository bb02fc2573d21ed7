import { type Socket, connect } from 'node:net'

/** Heartbeats of one node as the agent sends them with curl: a line each, over one request that lasts. */
export class HeartbeatStream {
  readonly #port: number
  readonly #number: number
  readonly #body: string
  #socket: Socket | undefined

  constructor(port: number, number: number, body: string) {
    this.#port = port
    this.#number = number
    this.#body = body
  }

  /** Whether it was answered as it should be. */
  beat(): Promise<boolean> {
    return new Promise(resolve => {
      const socket = this.#socket ?? this.#open()
      const line = this.#socket === undefined ? this.#body : ''
      this.#socket = socket
      const hear = (chunk?: Buffer): void => {
        socket.off('data', hear)
        socket.off('close', hear)
        resolve(chunk?.toString('latin1').endsWith('\r\ninterval=10\n\r\n') === true)
      }
      socket.on('data', hear)
      socket.on('close', hear)
      socket.write(`${(line.length + 1).toString(16)}\r\n${line}\n\r\n`)
    })
  }

  #open(): Socket {
    // As many clients as there are nodes have more addresses than one, and more ports.
    const localAddress = `127.0.${1 + (this.#number % 200)}.${2 + (this.#number % 250)}`
    const socket = connect({ host: '127.0.0.1', port: this.#port, localAddress })
    socket.once('error', () => {})
    socket.once('close', () => (this.#socket = undefined))
    socket.write(
      `POST /node/heartbeats HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n`,
    )
    return socket
  }
}
