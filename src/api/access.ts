import type { FastifyRequest } from 'fastify'
import { MusterError } from '../lib/errors.ts'
import { RateLimiter } from '../lib/rate.ts'
import { type Actor, mayAct } from '../control/actor.ts'
import type { Tokens } from '../control/tokens.ts'
import type { Api } from './context.ts'

export interface Limits {
  /** Requests a second for one token, and how many it may save up. */
  readonly requestsPerSecond: number
  readonly burst: number
  /** Failed log-ins a second from one address. */
  readonly failuresPerSecond: number
}

export const DEFAULT_LIMITS: Limits = { requestsPerSecond: 200, burst: 1000, failuresPerSecond: 5 }

/**
 * Default deny: a route that does not say who may call it cannot even be registered. The unix socket is root's, because
 * only root may open its file; everybody else shows a token.
 */
export function guard(app: Api, tokens: Tokens, isLocal: (request: FastifyRequest) => boolean, limits: Limits): void {
  const requests = new RateLimiter(limits.requestsPerSecond, limits.burst)
  const failures = new RateLimiter(limits.failuresPerSecond, limits.failuresPerSecond * 4)

  app.decorateRequest('actor', null)
  app.addHook('onRoute', route => {
    const role = route.config?.role
    if (role === undefined || (role === 'none' && !['/healthz', '/readyz'].includes(route.url))) {
      throw new Error(`route ${route.url} does not say who may call it`)
    }
  })
  app.addHook('onRequest', async request => {
    const { role } = request.routeOptions.config
    if (role === 'none') return
    const actor = isLocal(request) ? LOCAL_ROOT : authenticate(request, tokens, failures)
    if (actor !== LOCAL_ROOT && !requests.take(actor.token ?? actor.name))
      throw new MusterError('RATE_LIMITED', 'too many requests')
    request.actor = actor
    if (role !== undefined && !mayAct(actor, role)) {
      throw new MusterError('FORBIDDEN', `that needs the role ${role}; ${actor.name} has the role ${actor.role}`)
    }
  })
}

const LOCAL_ROOT: Actor = { name: 'root', role: 'admin', from: 'unix socket' }

function authenticate(request: FastifyRequest, tokens: Tokens, failures: RateLimiter): Actor {
  const from = request.socket.remoteAddress ?? 'unknown'
  const header = request.headers.authorization
  try {
    if (header === undefined) throw new MusterError('TOKEN_MISSING', 'no token was given')
    return tokens.authenticate(/^Bearer (\S+)$/i.exec(header)?.[1] ?? '', from)
  } catch (error) {
    if (!failures.take(from)) throw new MusterError('RATE_LIMITED', 'too many failed log-ins from this address')
    throw error
  }
}
