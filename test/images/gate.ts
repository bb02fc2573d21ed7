/** Where a step of a build can be met: it asks, the test hears of it, and answers when it likes. */
import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Visitor {
  readonly path: string
  /** Lets it go on. */
  open(): void
  /** Resolves when it has gone, let through or killed. */
  readonly gone: Promise<unknown>
}

export interface Gate extends AsyncDisposable {
  readonly url: string
  /** The next one that comes, or has come meanwhile. */
  visitor(): Promise<Visitor>
  /** From now on nobody is kept waiting. */
  openForAll(): void
}

export async function startGate(): Promise<Gate> {
  const come: Visitor[] = []
  const waiting: ((visitor: Visitor) => void)[] = []
  let isOpen = false
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (isOpen) {
      response.end('open\n')
      return
    }
    const visitor = {
      path: request.url ?? '',
      open: () => void response.end('open\n'),
      gone: once(response, 'close'),
    }
    const next = waiting.shift()
    if (next === undefined) come.push(visitor)
    else next(visitor)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    visitor: () =>
      new Promise(resolve => (come[0] === undefined ? waiting.push(resolve) : resolve(come.shift() as Visitor))),
    openForAll: () => void (isOpen = true),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
