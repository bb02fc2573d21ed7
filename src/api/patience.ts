import type { IncomingMessage } from 'node:http'
import type { Api } from './context.ts'

export interface Patience {
  /** Milliseconds in which a body must be here. */
  readonly body: number
  /** Where bodies may take any time: milliseconds without a byte of them. */
  readonly silence: number
}

/** Node's own limit is one for all requests, and would cut off an image that is being sent. */
export const DEFAULT_PATIENCE: Patience = { body: 30_000, silence: 60_000 }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whoever may call the route may also take any time to send or to read, as long as bytes keep moving. */
    slow?: boolean
  }
}

/** To be called before anything can refuse a request: those who are refused have no more time than others. */
export function limitBodies(app: Api, patience: Patience): void {
  const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>()
  app.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.headers['content-length'] === undefined && raw.headers['transfer-encoding'] === undefined) return
    const timer = setTimeout(() => {
      if (raw.complete) return
      if (!reply.raw.headersSent) raw.socket.write('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n')
      raw.socket.destroy()
    }, patience.body).unref()
    timers.set(raw, timer)
    raw.once('close', () => clearTimeout(timer))
  })
  // Comes after the check of who is asking.
  app.addHook('preParsing', async ({ raw, routeOptions }) => {
    if (routeOptions.config.slow !== true) return
    clearTimeout(timers.get(raw))
    // Node itself ends a connection on which nothing moves for so long.
    raw.setTimeout(patience.silence)
  })
}
