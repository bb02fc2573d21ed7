import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** A request that came in one piece. */
export interface WholeRequest {
  readonly method: string
  readonly url: string
  readonly body: Buffer
  /** Our address that was asked. */
  readonly server: string
  /** The address of whoever asks. */
  readonly from: string
}

export interface FastLane {
  /** What is said to it, with status 200; undefined where the server itself is to answer. */
  readonly answer: (request: WholeRequest) => string | undefined
  /** Whoever takes over the connection of a request whose body goes on; undefined where the server itself is to. */
  readonly takeOver: (request: WholeRequest) => ((socket: Socket, body: Buffer) => void) | undefined
}

/** As long as the server keeps connections. */
const IDLE = 15_000

/**
 * Twenty thousand nodes send two thousand heartbeats a second, and most of what that costs is Node's HTTP: its parser, two
 * streams and a dozen events for each request. Requests that are all plain and whose head comes in one piece, as those of
 * loaders and curl do, are read and answered here. Whatever is out of the ordinary goes to the server as it came, and the
 * connection with it, for good.
 */
export function addFastLane(server: Server, { answer, takeOver }: FastLane): void {
  const toServer = server.listeners('connection')
  server.removeAllListeners('connection')
  const lane = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    lane.add(socket)
    socket.once('close', () => lane.delete(socket))
    const hear = (chunk: Buffer): void => {
      const request = readRequest(chunk, socket)
      const listen = request?.isWhole === false ? tryTo(takeOver, request) : undefined
      if (request !== undefined && listen !== undefined) {
        socket.off('data', hear)
        return listen(socket, request.body)
      }
      const reply = request?.isWhole === true ? replyTo(request, answer) : undefined
      if (reply === undefined) {
        // The server reads from the handle itself: this must not happen while the stream is about to.
        socket.pause()
        socket.unshift(chunk)
        process.nextTick(() => {
          leave()
          lane.delete(socket)
          if (socket.destroyed) return
          for (const listener of toServer) listener.call(server, socket)
          socket.resume()
        })
      } else if (!socket.write(reply)) {
        // Whoever asks on without taking what was said has to wait.
        socket.pause()
        socket.once('drain', () => socket.resume())
      }
    }
    const leave = stayInLane(socket, hear)
  })
  closeWith(server, lane)
}

/** Until the function is called that it returns. */
function stayInLane(socket: Socket, onData: (chunk: Buffer) => void): () => void {
  const destroy = (): void => void socket.destroy()
  // Once all that was said is on its way, there is nobody to say anything more to.
  const onEnd = (): void => void (socket.writableLength === 0 ? socket.destroy() : socket.end())
  socket.setTimeout(IDLE, destroy)
  socket.on('error', destroy)
  socket.on('end', onEnd)
  socket.on('data', onData)
  return () => {
    socket.setTimeout(0, destroy)
    socket.off('error', destroy)
    socket.off('end', onEnd)
    socket.off('data', onData)
  }
}

/** Connections that the server does not know of end when its own do. */
function closeWith(server: Server, lane: ReadonlySet<Socket>): void {
  const closeIdle = server.closeIdleConnections.bind(server)
  const closeAll = server.closeAllConnections.bind(server)
  server.closeIdleConnections = () => {
    for (const socket of lane) socket.destroySoon()
    closeIdle()
  }
  server.closeAllConnections = () => {
    for (const socket of lane) socket.destroy()
    closeAll()
  }
}

const END = '\r\n\r\n'
/** Names and values of nothing but plain characters, one a line; anything else may mean more than it seems to. */
const PLAIN = /^(GET|POST) ([!-~]+) HTTP\/1\.1\r\n((?:[\w-]+:[ -~]*\r\n)+)$/
const SPECIAL = /^(?:expect|upgrade|trailer|connection(?!: ?keep-alive\r\n)):/im
const CHUNKED = /^transfer-encoding: ?chunked\r\n/im
const ENCODINGS = /^transfer-encoding:/gim
const HOST = /^host:/im
const LENGTH = /^content-length: ?(\d{1,6})\r\n/im
const LENGTHS = /^content-length:[^]*^content-length:/im

interface ReadRequest extends WholeRequest {
  /** Else its body is in chunks, and this is the beginning of it. */
  readonly isWhole: boolean
}

function readRequest(chunk: Buffer, socket: Socket): ReadRequest | undefined {
  const end = chunk.indexOf(END)
  if (end < 0) return undefined
  const [, method, url, headers] = PLAIN.exec(chunk.toString('latin1', 0, end + 2)) ?? []
  if (method === undefined || url === undefined || headers === undefined) return undefined
  if (SPECIAL.test(headers) || !HOST.test(headers) || LENGTHS.test(headers)) return undefined
  const body = chunk.subarray(end + END.length)
  const server = (socket.localAddress ?? '').replace(/^::ffff:/, '')
  const from = (socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  const length = LENGTH.exec(headers)?.[1]
  const encodings = headers.match(ENCODINGS)?.length ?? 0
  if (encodings > 0)
    return encodings === 1 && CHUNKED.test(headers) && length === undefined
      ? { method, url, body, server, from, isWhole: false }
      : undefined
  return body.length === Number(length ?? 0) ? { method, url, body, server, from, isWhole: true } : undefined
}

function replyTo(request: WholeRequest, answer: FastLane['answer']): string | undefined {
  const said = tryTo(answer, request)
  if (said === undefined) return undefined
  const length = Buffer.byteLength(said)
  return `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${length}\r\nDate: ${httpDate()}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${IDLE / 1000}\r\n\r\n${said}`
}

const date = { second: 0, text: '' }
function httpDate(): string {
  const now = Date.now()
  const second = Math.floor(now / 1000)
  if (date.second !== second) Object.assign(date, { second, text: new Date(now).toUTCString() })
  return date.text
}

/** What fails here fails again in the server, which knows what to say then. */
function tryTo<Answer>(ask: (request: WholeRequest) => Answer | undefined, request: WholeRequest): Answer | undefined {
  try {
    return ask(request)
  } catch {
    return undefined
  }
}
