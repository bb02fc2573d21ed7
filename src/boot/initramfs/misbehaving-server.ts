/** For tests: a real HTTP server that behaves, request by request, as servers and networks do on bad days. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Behaviour =
  | 'right'
  /** The connection breaks after a third. */
  | 'breaks'
  /** All headers are right, but half of it is missing. */
  | 'short'
  /** One bit is another. */
  | 'corrupt'
  /** As if it knew nothing of ranges; and the first byte is wrong. */
  | 'from-the-start'
  | 'long'
  | 'error'
  | 'missing'
  /** Takes the request, and never says anything. */
  | 'silent'
  /** The whole server is killed half way, and started anew. */
  | 'restart'

export class MisbehavingServer {
  readonly requests: string[] = []
  readonly #content: Buffer
  readonly #behaviours: Behaviour[]
  #server: Server
  #port = 0

  private constructor(content: Buffer, behaviours: readonly Behaviour[]) {
    this.#content = content
    this.#behaviours = [...behaviours]
    this.#server = this.#make()
  }

  /** The last of the behaviours goes on for ever. */
  static async start(content: Buffer, ...behaviours: readonly Behaviour[]): Promise<MisbehavingServer> {
    const server = new MisbehavingServer(content, behaviours)
    await server.#listen()
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise(resolve => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #make(): Server {
    return createServer((request, response) => this.#answer(request, response))
  }

  async #listen(): Promise<void> {
    await new Promise<void>(resolve => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const behaviour = (this.#behaviours.length > 1 ? this.#behaviours.shift() : this.#behaviours[0]) ?? 'right'
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    this.requests.push(`${request.method} ${request.url?.slice(0, 9)} ${from} ${behaviour}`)
    if (behaviour === 'silent') return
    if (behaviour === 'error') return void response.writeHead(500).end('error: no\n')
    if (behaviour === 'missing') return void response.writeHead(404).end('error: no such blob\n')
    const start = behaviour === 'from-the-start' ? 0 : from
    const body = Buffer.from(this.#content.subarray(start))
    if (behaviour === 'corrupt') body[body.length >> 1] = (body[body.length >> 1] ?? 0) ^ 1
    if (behaviour === 'from-the-start') body[0] = (body[0] ?? 0) ^ 1
    const extra = behaviour === 'long' ? Buffer.alloc(100_000) : Buffer.alloc(0)
    const sent = behaviour === 'short' ? body.subarray(0, body.length >> 1) : Buffer.concat([body, extra])
    const range = { 'content-range': `bytes ${start}-${this.#content.length - 1}/${this.#content.length}` }
    response.writeHead(start > 0 ? 206 : 200, { 'content-length': sent.length, ...(start > 0 && range) })
    if (behaviour !== 'breaks' && behaviour !== 'restart') return void response.end(sent)
    response.write(sent.subarray(0, Math.floor(sent.length / 3)), () => {
      if (behaviour === 'breaks') response.socket?.destroySoon()
      else void this.#restart()
    })
  }

  async #restart(): Promise<void> {
    await this[Symbol.asyncDispose]()
    this.#server = this.#make()
    await this.#listen()
  }
}
