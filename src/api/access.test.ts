import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ErrorCode, MusterError } from '../lib/errors.ts'
import { type Role, ROLES } from '../control/actor.ts'
import { operator } from '../control/testing.ts'
import { DEFAULT_LIMITS, guard } from './access.ts'
import type { Api } from './context.ts'
import { ProblemReply } from './schemas.ts'
import { buildApi } from './server.ts'
import { type Reply, type TestServer, request, startTestServer } from './testing.ts'

/**
 * Every route there is, who may call it, and what an allowed but harmless call comes to: 200 or an error. A new route belongs
 * in here.
 */
const ROUTES: readonly [method: string, path: string, role: Role | 'none', outcome: Outcome, body?: unknown][] = [
  ['GET', '/healthz', 'none', 200],
  ['GET', '/readyz', 'none', 200],
  ['GET', '/metrics', 'viewer', 200],
  ['GET', '/api/v1/openapi.json', 'viewer', 200],
  ['GET', '/api/v1/status', 'viewer', 200],
  ['GET', '/api/v1/nodes', 'viewer', 200],
  ['GET', '/api/v1/nodes/:name', 'viewer', 'NODE_UNKNOWN'],
  ['GET', '/api/v1/nodes/:name/explain', 'viewer', 'NODE_UNKNOWN'],
  ['GET', '/api/v1/nodes/:name/files', 'viewer', 'NODE_UNKNOWN'],
  ['GET', '/api/v1/nodes/:name/timeline', 'viewer', 'NODE_UNKNOWN'],
  ['GET', '/api/v1/nodes/:name/boot', 'viewer', 'NODE_UNKNOWN'],
  ['POST', '/api/v1/nodes/:name/revoke', 'operator', 'NODE_UNKNOWN'],
  ['GET', '/api/v1/ca', 'viewer', 200],
  ['POST', '/api/v1/ca/renew', 'operator', 200],
  ['POST', '/api/v1/places', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['POST', '/api/v1/nodes/:name/swap', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['DELETE', '/api/v1/nodes/:name/swap', 'operator', 'SWAP_REFUSED'],
  ['GET', '/api/v1/boot/view', 'viewer', 'BOOT_NOT_READY'],
  ['POST', '/api/v1/boot/sightings', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['GET', '/api/v1/machines', 'viewer', 200],
  ['GET', '/api/v1/machines/:id', 'viewer', 'REQUEST_INVALID'],
  ['DELETE', '/api/v1/machines/:id', 'operator', 'REQUEST_INVALID'],
  ['POST', '/api/v1/machines/:id/adopt', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['POST', '/api/v1/nodes', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['PATCH', '/api/v1/nodes', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['DELETE', '/api/v1/nodes', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['GET', '/api/v1/groups', 'viewer', 200],
  ['POST', '/api/v1/groups', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['PATCH', '/api/v1/groups/:name', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['DELETE', '/api/v1/groups/:name', 'operator', 'GROUP_UNKNOWN'],
  ['GET', '/api/v1/site/plan', 'viewer', 200],
  ['POST', '/api/v1/site/apply', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['GET', '/api/v1/site/generations', 'viewer', 200],
  ['POST', '/api/v1/site/revert', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['GET', '/api/v1/images', 'viewer', 200],
  ['GET', '/api/v1/images/:name/:reference', 'viewer', 'IMAGE_UNKNOWN'],
  ['PUT', '/api/v1/images/:name', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['DELETE', '/api/v1/images/:name/:reference', 'operator', 'REQUEST_INVALID'],
  ['GET', '/api/v1/images/:name/:reference/about', 'viewer', 'REQUEST_INVALID'],
  ['PUT', '/api/v1/images/:name/:reference/about', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['GET', '/api/v1/channels', 'viewer', 200],
  ['GET', '/api/v1/channels/:name/:channel', 'viewer', 'CHANNEL_UNKNOWN'],
  ['PUT', '/api/v1/channels/:name/:channel', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['POST', '/api/v1/channels/:name/:channel/rollback', 'operator', 'CHANNEL_UNKNOWN', {}],
  ['DELETE', '/api/v1/channels/:name/:channel', 'operator', 'CHANNEL_UNKNOWN'],
  ['GET', '/api/v1/blobs/:sha256', 'viewer', 'REQUEST_INVALID'],
  ['PUT', '/api/v1/blobs/:sha256', 'operator', 'REQUEST_INVALID'],
  ['POST', '/api/v1/blobs/missing', 'operator', 'REQUEST_INVALID', { rubbish: 1 }],
  ['GET', '/api/v1/events', 'viewer', 200],
  // Asked for with a parameter it does not know, because a stream has no end.
  ['GET', '/api/v1/events/stream', 'viewer', 'REQUEST_INVALID'],
  ['GET', '/api/v1/tokens', 'admin', 200],
  ['POST', '/api/v1/tokens', 'admin', 'REQUEST_INVALID', { rubbish: 1 }],
  ['DELETE', '/api/v1/tokens/:id', 'admin', 'TOKEN_UNKNOWN'],
  ['POST', '/api/v1/backup', 'admin', 200],
]
type Outcome = 200 | ErrorCode
const urlOf = (path: string): string => path.replaceAll(/:\w+/g, 'nobody').replace('stream', 'stream?rubbish=1')

const CALLERS = ['no token', 'bad token', 'expired token', 'viewer', 'operator', 'admin', 'unix socket'] as const
type Caller = (typeof CALLERS)[number]

let server: TestServer
const clock = { offset: 0 }
const secrets = new Map<Caller, string>()

beforeAll(async () => {
  server = await startTestServer({ now: () => new Date(Date.now() + clock.offset) })
  secrets.set('bad token', `muster_${'0'.repeat(12)}_${'A'.repeat(43)}`)
  clock.offset = -7_200_000
  secrets.set('expired token', await server.token('admin', 'late'))
  clock.offset = 0
  for (const role of ROLES) secrets.set(role, await server.token(role))
})
afterAll(() => server[Symbol.asyncDispose]())

const call = (caller: Caller, method: string, path: string, body?: unknown): Promise<Reply> =>
  caller === 'unix socket'
    ? server.root(method, path, body)
    : server.ask(method, path, { token: secrets.get(caller), body })

function expected(caller: Caller, role: Role | 'none', outcome: Outcome): Outcome {
  if (role === 'none') return outcome
  if (caller === 'no token') return 'TOKEN_MISSING'
  if (caller === 'bad token') return 'TOKEN_INVALID'
  if (caller === 'expired token') return 'TOKEN_EXPIRED'
  return caller === 'unix socket' || ROLES.indexOf(caller) >= ROLES.indexOf(role) ? outcome : 'FORBIDDEN'
}

const statusOf = (outcome: Outcome): number => (outcome === 200 ? 200 : new MusterError(outcome, '').status)

describe('who may call what', () => {
  it('is said here for every route there is', async () => {
    const { store, control, tokens, images, channels, boot } = server
    const context = {
      version: 'x',
      store,
      control,
      tokens,
      images,
      channels,
      ...boot,
      stopping: new AbortController().signal,
    }
    const app = await buildApi(context, {}, () => true)
    const routes = flatten(app.printRoutes({ commonPrefix: false, includeHooks: false }))
    await app.close()
    const table = ROUTES.map(([method, path]) => `${method} ${path}`)
    expect(routes.filter(route => !route.startsWith('HEAD ')).sort()).toEqual(table.toSorted())
    // Fastify adds a HEAD to a GET, and that asks for the same role (below). There is no other.
    const heads = routes.filter(route => route.startsWith('HEAD ')).map(route => route.replace('HEAD', 'GET'))
    expect(table).toEqual(expect.arrayContaining(heads))

    const document = (await server.root('GET', '/api/v1/openapi.json')).body as { paths: Record<string, object> }
    const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(method => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    )
    const published = table.filter(one => !one.endsWith('openapi.json'))
    expect(documented.sort()).toEqual(published.sort())
  })

  it.for(CALLERS)('holds for: %s', async caller => {
    const revision = await server.store.revision()
    for (const [method, path, role, outcome, body] of ROUTES) {
      const reply = await call(caller, method, urlOf(path), body)
      const came = reply.status === 200 ? 200 : ProblemReply.parse(reply.body).code
      const want = expected(caller, role, outcome)
      expect({ method, path, came, status: reply.status }).toEqual({ method, path, came: want, status: statusOf(want) })
      expect(reply.headers['www-authenticate']).toBe(reply.status === 401 ? 'Bearer' : undefined)
    }
    // Nothing happened, except the one renewal and the one backup that were allowed.
    const kinds = (await server.store.events({ after: revision })).map(event => event.kind)
    const isAdmin = caller === 'admin' || caller === 'unix socket'
    expect(kinds).toEqual(isAdmin ? ['ca.renewed', 'backup.made'] : caller === 'operator' ? ['ca.renewed'] : [])
  })

  it('holds for HEAD as for GET', async () => {
    for (const [method, path, role, outcome] of ROUTES) {
      // A stream has no HEAD that would make sense: see events.test.ts.
      if (method !== 'GET' || path.endsWith('/stream')) continue
      for (const caller of ['no token', 'viewer'] as const) {
        const reply = await call(caller, 'HEAD', urlOf(path))
        expect({ path, caller, status: reply.status, text: reply.text }).toEqual({
          path,
          caller,
          status: statusOf(expected(caller, role, outcome)),
          text: '',
        })
      }
    }
  })

  it.for([
    '/',
    '/api',
    '/api/v1',
    '/api/v1/',
    '/api/v2/nodes',
    '/api/v1/nodes/x/y/z',
    '/API/V1/NODES',
    '//api/v1/nodes',
    '/healthz/',
    '/healthz/x',
    '/HEALTHZ',
    '/readyz%00',
    '/.git/config',
    '/documentation',
    '/documentation/json',
    '/favicon.ico',
    '*',
  ])('an unknown route, %s, is told from a known one only to those who have a token', async path => {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const reply = await server.ask(method, path)
      expect({ method, status: reply.status }).toEqual({ method, status: 401 })
      expect(ProblemReply.parse(reply.body).code).toBe('TOKEN_MISSING')
    }
    const known = await server.ask('GET', path, { token: secrets.get('viewer') })
    expect(known.status).toBe(404)
    expect(ProblemReply.parse(known.body).code).toBe('ROUTE_UNKNOWN')
    expect((await server.root('GET', path)).status).toBe(404)
  })

  it.for(['PUT', 'OPTIONS', 'PROPFIND', 'TRACE', 'SEARCH', 'MKCOL'])(
    'the method %s, which no route there has, is refused',
    async method => {
      expect((await server.ask(method, '/api/v1/nodes')).status).toBe(401)
      expect((await server.ask(method, '/healthz')).status).toBe(401)
      expect((await server.ask(method, '/api/v1/nodes', { token: secrets.get('admin') })).status).toBe(404)
    },
  )
})

describe('a token', () => {
  it.for(['Basic abc', 'Bearer', 'Bearer ', 'Bearer a b', 'token x', '', 'null', 'Bearer undefined'])(
    'is not what this header says: %j',
    async authorization => {
      const reply = await server.ask('GET', '/api/v1/status', { headers: { authorization } })
      expect(reply.status).toBe(401)
      expect(ProblemReply.parse(reply.body).code).toMatch(/^TOKEN_(INVALID|MISSING)$/)
    },
  )

  it('counts with the scheme in any case, and nowhere but in the header', async () => {
    const token = secrets.get('admin') ?? ''
    const asHeader = await server.ask('GET', '/api/v1/status', { headers: { authorization: `bearer ${token}` } })
    expect(asHeader.status).toBe(200)
    for (const path of [`/api/v1/status?token=${token}`, `/api/v1/status?access_token=${token}`])
      expect((await server.ask('GET', path)).status).toBe(401)
    for (const headers of [{ cookie: `token=${token}` }, { 'x-auth-token': token }, { 'x-api-key': token }])
      expect((await server.ask('GET', '/api/v1/status', { headers })).status).toBe(401)
  })

  it('given twice is refused or taken as the first, never as the one that suits', async () => {
    const socket = await server.dial()
    const [good, bad] = [secrets.get('admin'), secrets.get('bad token')]
    socket.end(
      `GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bad}\r\nAuthorization: Bearer ${good}\r\nConnection: close\r\n\r\n`,
    )
    const text = (await socket.toArray()).join('')
    expect(text).toMatch(/^HTTP\/1\.1 40[01] /)
  })

  it('that is revoked is refused from the next request on', async () => {
    const { token, info } = await server.tokens.create(operator, 'brief', 'viewer', 3600)
    expect((await server.ask('GET', '/api/v1/status', { token })).status).toBe(200)
    expect((await server.root('DELETE', `/api/v1/tokens/${info.id}`)).status).toBe(200)
    expect((await server.ask('GET', '/api/v1/status', { token })).status).toBe(401)
  })

  it('cannot be replaced by saying one comes from elsewhere', async () => {
    for (const headers of [
      { 'x-forwarded-for': '127.0.0.1' },
      { forwarded: 'for=unix:' },
      { 'x-real-ip': '127.0.0.1', host: 'localhost' },
      { 'x-remote-user': 'root' },
    ])
      expect((await server.ask('GET', '/api/v1/status', { headers })).status).toBe(401)
  })

  it('says in the audit log who acted and from which address', async () => {
    await server.ask('POST', '/api/v1/backup', {
      token: secrets.get('admin'),
      headers: { 'x-forwarded-for': '6.6.6.6' },
    })
    const [event] = await server.store.events({ kind: 'backup.made', newestFirst: true, limit: 1 })
    expect(event).toMatchObject({ actor: 'admin', from: '127.0.0.1' })
  })
})

const guarded = (): Api => {
  const app = fastify() as unknown as Api
  guard(app, server.tokens, () => false, DEFAULT_LIMITS)
  return app
}

describe('a route that does not say who may call it', () => {
  it('cannot be registered', async () => {
    const app = guarded()
    expect(() => app.get('/anything', async () => 'secret')).toThrow('route /anything does not say who may call it')
    expect(() => app.get('/other', { config: {} }, async () => 'secret')).toThrow('does not say who may call it')
    await app.close()
  })

  it('cannot be open to everybody, unless it is one of the two health checks', async () => {
    const app = guarded()
    for (const path of ['/anything', '/healthz/more', '/api/v1/healthz', '/healthzz'])
      expect(() => app.get(path, { config: { role: 'none' } }, async () => 'secret')).toThrow('does not say who may')
    expect(() => app.get('/healthz', { config: { role: 'none' } }, async () => 'ok')).not.toThrow()
    await app.close()
  })

  it('cannot be registered by a plugin either', async () => {
    const app = guarded()
    void app.register(async inner => {
      inner.get('/inner', async () => 'secret')
    })
    await expect(app.ready()).rejects.toThrow('route /inner does not say who may call it')
  })
})

describe('too many requests', () => {
  it('of one token are refused for a while; another token and the unix socket are served', async () => {
    await using limited = await startTestServer({ limits: { requestsPerSecond: 1, burst: 5 } })
    const [greedy, modest] = [await limited.token('viewer', 'greedy'), await limited.token('viewer', 'modest')]
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => limited.ask('GET', '/api/v1/status', { token: greedy })),
    )
    const refused = replies.filter(({ status }) => status === 429)
    expect(replies.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(7)
    expect(refused.length).toBeGreaterThanOrEqual(13)
    for (const reply of refused) {
      expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(ProblemReply.parse(reply.body).code).toBe('RATE_LIMITED')
    }
    expect((await limited.ask('GET', '/api/v1/status', { token: modest })).status).toBe(200)
    expect((await limited.root('GET', '/api/v1/status')).status).toBe(200)
    expect((await limited.ask('GET', '/healthz')).status).toBe(200)
  })

  it('of one token do not count against another of the same name', async () => {
    await using limited = await startTestServer({ limits: { requestsPerSecond: 0.01, burst: 2 } })
    const [one, other] = [await limited.token('viewer', 'same'), await limited.token('viewer', 'same')]
    const statuses = []
    for (let count = 0; count < 3; count++)
      statuses.push((await limited.ask('GET', '/api/v1/status', { token: one })).status)
    expect(statuses).toEqual([200, 200, 429])
    expect((await limited.ask('GET', '/api/v1/status', { token: other })).status).toBe(200)
  })

  it('that are refused for lack of a role count as well', async () => {
    await using limited = await startTestServer({ limits: { requestsPerSecond: 0.01, burst: 2 } })
    const token = await limited.token('viewer')
    const statuses = []
    for (let count = 0; count < 3; count++)
      statuses.push((await limited.ask('GET', '/api/v1/tokens', { token })).status)
    expect(statuses).toEqual([403, 403, 429])
  })

  it('with wrong tokens are limited by address, and do not lock out those with a right one', async () => {
    await using limited = await startTestServer({ limits: { failuresPerSecond: 0.01 * 25 } })
    const token = await limited.token('viewer')
    const guess = (from: string, headers = {}) =>
      request({ ...address(limited), localAddress: from }, 'GET', '/api/v1/status', { token: 'wrong', headers })
    const first = []
    for (let count = 0; count < 3; count++) first.push((await guess('127.0.0.1')).status)
    expect(first).toEqual([401, 429, 429])
    const reply = await guess('127.0.0.1', { 'x-forwarded-for': '203.0.113.1' })
    expect(reply.status).toBe(429)
    expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect((await guess('127.0.0.2')).status).toBe(401)
    expect((await limited.ask('GET', '/api/v1/status', { token })).status).toBe(200)
  })
})

const address = (one: TestServer): { host: string; port: string } => {
  const { hostname: host, port } = new URL(one.url)
  return { host, port }
}

/** Fastify prints its routes as a tree: `├── /nodes (GET, HEAD)`, children indented by four characters. */
function flatten(tree: string): string[] {
  const path: string[] = []
  return tree.split('\n').flatMap(line => {
    const match = /^((?:│ {3}| {4})*)[├└]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line)
    if (match === null) return []
    const [, indent = '', part = '', methods] = match
    path.length = indent.length / 4
    path.push(part)
    return methods === undefined ? [] : methods.split(', ').map(method => `${method} ${path.join('')}`)
  })
}
