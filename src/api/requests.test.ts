import { Agent, get } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operator } from '../control/testing.ts'
import { ProblemReply } from './schemas.ts'
import { type Ask, type Reply, type TestServer, say, startTestServer } from './testing.ts'

let server: TestServer
let token: string
let revision: number

beforeAll(async () => {
  server = await startTestServer()
  await server.control.apply(operator)
  token = await server.token('admin')
  revision = await server.store.revision()
})
afterAll(() => server[Symbol.asyncDispose]())

const ask = (method: string, path: string, how: Ask = {}): Promise<Reply> => server.ask(method, path, { token, ...how })

/** Exactly { code, message, hint, details }, as JSON. */
function problemOf(reply: Reply): ProblemReply {
  expect(reply.headers['content-type']).toMatch(/^application\/json/)
  expect(Object.keys(reply.body as object).sort()).toEqual(['code', 'details', 'hint', 'message'])
  return ProblemReply.parse(reply.body)
}

describe('a body', () => {
  it.for([
    ['cut off', '{'],
    ['misspelt', '{"allowDirty": tru}'],
    ['empty', ''],
    ['a zero', '\0'],
    ['two of them', '{"a":1}{"a":1}'],
    ['poison for prototypes', '{"__proto__": {"role": "admin"}}'],
    ['poison for constructors', '{"constructor": {"prototype": {"role": "admin"}}}'],
    ['deep and cut off', '['.repeat(100_000)],
    ['deep and whole', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`],
    ['a mark and rubbish', '\uFEFF{}x'],
  ] as const)('that is no JSON of ours is refused: %s', async ([, body]) => {
    for (const [method, path] of [
      ['POST', '/api/v1/site/apply'],
      ['POST', '/api/v1/nodes'],
      ['PATCH', '/api/v1/groups/compute'],
      ['DELETE', '/api/v1/nodes'],
      ['POST', '/api/v1/tokens'],
    ] as const) {
      const reply = await ask(method, path, { body })
      expect({ path, status: reply.status }).toEqual({ path, status: 400 })
      expect(problemOf(reply).code).toBe('REQUEST_INVALID')
    }
  })

  it.for(['null', '[]', '"text"', '42', 'true'])('that is %s is refused', async body => {
    const reply = await ask('POST', '/api/v1/site/apply', { body })
    expect(reply.status).toBe(400)
    expect(problemOf(reply).code).toBe('REQUEST_INVALID')
  })

  it.for([
    ['POST', '/api/v1/site/apply', { force: true }, 'force'],
    ['POST', '/api/v1/site/apply', { expect: { tree: 'x', generation: 1, extra: 1 } }, 'extra'],
    ['POST', '/api/v1/site/revert', { generation: 1, yes: true }, 'yes'],
    ['POST', '/api/v1/nodes', { nodes: 'n9', role: 'admin' }, 'role'],
    ['PATCH', '/api/v1/nodes', { nodes: 'n001', set: {}, file: 'nodes.yaml' }, 'file'],
    ['DELETE', '/api/v1/nodes', { nodes: 'n001', recursive: true }, 'recursive'],
    ['POST', '/api/v1/groups', { name: 'a', nodes: 'n001' }, 'nodes'],
    ['PATCH', '/api/v1/groups/compute', { set: {}, name: 'b' }, 'name'],
    ['POST', '/api/v1/tokens', { name: 'a', role: 'viewer', seconds: 60, id: 'x' }, 'id'],
  ] as const)(
    'of %s %s with a field nobody knows is refused and the field named',
    async ([method, path, body, field]) => {
      const reply = await ask(method, path, { body })
      expect(reply.status).toBe(400)
      const problem = problemOf(reply)
      expect(problem.code).toBe('REQUEST_INVALID')
      expect(problem.details.join('\n')).toContain(`"${field}"`)
    },
  )

  it.for([
    ['POST', '/api/v1/site/apply', { allowDirty: 'yes' }, 'allowDirty'],
    ['POST', '/api/v1/site/revert', { generation: 0 }, 'generation'],
    ['POST', '/api/v1/site/revert', { generation: 1.5 }, 'generation'],
    ['POST', '/api/v1/site/revert', { generation: '1' }, 'generation'],
    ['POST', '/api/v1/site/revert', {}, 'generation'],
    ['POST', '/api/v1/nodes', { nodes: '' }, 'nodes'],
    ['POST', '/api/v1/nodes', { nodes: 'n9', file: '../../etc/passwd' }, 'file'],
    ['POST', '/api/v1/nodes', { nodes: 'n9', file: 'site.yaml' }, 'file'],
    ['POST', '/api/v1/nodes', { nodes: 'n9', file: 'nodes/../site.yaml' }, 'file'],
    ['POST', '/api/v1/nodes', { nodes: 'n9', message: '' }, 'message'],
    ['PATCH', '/api/v1/nodes', { nodes: 'n001' }, 'set'],
    ['PATCH', '/api/v1/nodes', { nodes: 'n001', set: [] }, 'set'],
    ['POST', '/api/v1/tokens', { name: 'a b', role: 'viewer', seconds: 60 }, 'name'],
    ['POST', '/api/v1/tokens', { name: 'a\nb', role: 'viewer', seconds: 60 }, 'name'],
    ['POST', '/api/v1/tokens', { name: 'a', role: 'root', seconds: 60 }, 'role'],
    ['POST', '/api/v1/tokens', { name: 'a', role: 'viewer', seconds: 59 }, 'seconds'],
    ['POST', '/api/v1/tokens', { name: 'a', role: 'viewer', seconds: 400 * 86_400 }, 'seconds'],
    ['POST', '/api/v1/tokens', { name: 'a', role: 'viewer', seconds: 1e308 }, 'seconds'],
  ] as const)('of %s %s with a wrong value is refused and the field named: %j', async ([method, path, body, field]) => {
    const reply = await ask(method, path, { body })
    expect(reply.status).toBe(400)
    const problem = problemOf(reply)
    expect(problem.code).toBe('REQUEST_INVALID')
    expect(problem.details.join('\n')).toMatch(new RegExp(`^${field}: `, 'm'))
  })

  it.for([
    ['lists', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['maps', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`],
  ] as const)('that is too deep where anything may stand is refused: %s', async ([, value]) => {
    const body = `{"nodes":"n001","set":{"vars.x":${value}}}`
    const reply = await ask('PATCH', '/api/v1/nodes', { body })
    expect([400, 413, 422]).toContain(reply.status)
    problemOf(reply)
  })

  it('that names a monstrous node set is refused, and quickly', async () => {
    for (const nodes of ['n[1-999999999999]', 'n[1-99999]n[1-99999]', 'n[0-9]'.repeat(40)]) {
      for (const method of ['POST', 'PATCH', 'DELETE']) {
        const reply = await ask(method, '/api/v1/nodes', { body: { nodes, ...(method !== 'DELETE' && { set: {} }) } })
        expect({ nodes, method, status: reply.status }).toEqual({ nodes, method, status: 400 })
        expect(problemOf(reply).code).toBe('NODESET_INVALID')
      }
      const reply = await ask('GET', `/api/v1/nodes?nodes=${encodeURIComponent(nodes)}`)
      expect(problemOf(reply).code).toBe('NODESET_INVALID')
    }
  })

  it('that is too large is refused with 413, declared or not', async () => {
    const body = JSON.stringify({ nodes: 'n9', message: 'x'.repeat(2 ** 20) })
    const declared = await ask('POST', '/api/v1/nodes', { body })
    expect(declared.status).toBe(413)
    expect(problemOf(declared).code).toBe('BODY_TOO_LARGE')

    const socket = await server.dial()
    const chunk = 'x'.repeat(64 * 1024)
    const chunks = `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(20)
    const text = await say(
      socket,
      `POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunks}0\r\n\r\n`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 413 /)
  })

  it.for([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonp',
    'rubbish',
    '',
  ])('of the type %j is refused', async type => {
    const headers = { 'content-type': type }
    const reply = await ask('POST', '/api/v1/site/revert', { body: '{"generation":99}', headers })
    expect([400, 415]).toContain(reply.status)
    expect(problemOf(reply).code).toBe('REQUEST_INVALID')
  })

  it.for(['application/json', 'application/json; charset=utf-8', 'Application/JSON'])(
    'of the type %j is read',
    async type => {
      const headers = { 'content-type': type }
      const reply = await ask('POST', '/api/v1/site/revert', { body: '{"generation":99}', headers })
      expect(problemOf(reply).code).toBe('GENERATION_UNKNOWN')
    },
  )

  it('whose length is not what it says is not waited for beyond the connection', async () => {
    const socket = await server.dial()
    socket.on('error', () => {})
    socket.end(
      `POST /api/v1/site/apply HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{}`,
    )
    await socket.toArray().catch(() => [])
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
  })
})

describe('a query', () => {
  it.for([
    '/api/v1/nodes?rubbish=1',
    '/api/v1/nodes?limit=0',
    '/api/v1/nodes?limit=-1',
    '/api/v1/nodes?limit=50001',
    '/api/v1/nodes?limit=x',
    '/api/v1/nodes?limit=1.5',
    '/api/v1/nodes?limit=1&limit=2',
    '/api/v1/nodes?nodes=a&nodes=b',
    '/api/v1/nodes?__proto__=1',
    '/api/v1/nodes?__proto__[role]=admin',
    `/api/v1/nodes?after=${'n'.repeat(64)}`,
    '/api/v1/nodes/n001/explain?rubbish=1',
    '/api/v1/events?after=-1',
    '/api/v1/events?after=x',
    '/api/v1/events?before=0',
    '/api/v1/events?limit=10001',
    '/api/v1/events?order=sideways',
    `/api/v1/events?kind=${'k'.repeat(101)}`,
    '/api/v1/events/stream?after=-1',
    '/api/v1/events/stream?after=1e400',
    '/api/v1/events/stream?limit=1',
    '/api/v1/site/plan?allowDirty=perhaps',
    '/api/v1/site/plan?rubbish',
  ])('that is wrong or unknown is refused: %s', async path => {
    const reply = await ask('GET', path)
    expect(reply.status).toBe(400)
    expect(problemOf(reply)).toMatchObject({ code: 'REQUEST_INVALID', message: 'the querystring is not valid' })
  })

  it('on routes that have none does no harm', async () => {
    for (const path of ['/healthz?x=1', '/api/v1/status?x=1', '/metrics?x=1'])
      expect((await ask('GET', path)).status).toBeLessThan(500)
  })
})

describe('a path', () => {
  it.for([
    ['/api/v1/nodes/..%2f..', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/..%2f..%2f..%2fetc%2fpasswd', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/n001%00', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/n001%2fexplain', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/%2e%2e', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/__proto__', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/constructor', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/n001%0d%0aX-Evil:%201', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/..', 'NODE_UNKNOWN'],
    ['/api/v1/nodes/../tokens', 'ROUTE_UNKNOWN'],
    ['/healthz/../api/v1/nodes', 'ROUTE_UNKNOWN'],
    ['/api/v1/nodes/n001/explain/..', 'ROUTE_UNKNOWN'],
    ['/api/v1/nodes/n001;x=1', 'NODE_UNKNOWN'],
  ] as const)('that tries to lead elsewhere leads nowhere: %s', async ([path, code]) => {
    expect((await server.ask('GET', path)).status).toBe(401)
    const reply = await ask('GET', path)
    expect(reply.status).toBe(404)
    expect(problemOf(reply).code).toBe(code)
    expect(reply.headers['x-evil']).toBeUndefined()
  })

  it.for(['..%2fsite', '..%2f..%2fescape', '%2e%2e', 'compute%2f..%2f..%2fsite', 'a%00b', '.hidden', '-rf'])(
    'of a group cannot leave the folder of groups: %s',
    async name => {
      for (const reply of [
        await ask('PATCH', `/api/v1/groups/${name}`, { body: { set: { 'vars.x': 1 } } }),
        await ask('DELETE', `/api/v1/groups/${name}`),
      ]) {
        expect(reply.status).toBe(404)
        expect(problemOf(reply).code).toBe('GROUP_UNKNOWN')
      }
      const reply = await ask('POST', '/api/v1/groups', { body: { name: decodeURIComponent(name) } })
      expect(reply.status).toBe(400)
      expect(problemOf(reply).code).toBe('EDIT_INVALID')
      expect(await server.site.git('status', '--porcelain')).toBe('')
    },
  )

  it('that cannot be decoded is a problem like any other', async () => {
    for (const path of ['/api/v1/nodes/%', '/api/v1/nodes/%zz', '/api/v1/nodes/%c3%28', '/%ff']) {
      const reply = await ask('GET', path)
      expect({ path, status: reply.status }).toEqual({ path, status: 400 })
      expect(problemOf(reply).code).toBe('REQUEST_INVALID')
    }
  })

  it('with a name that is too long is a problem like any other', async () => {
    for (const length of [64, 101, 5000]) {
      const reply = await ask('GET', `/api/v1/nodes/${'n'.repeat(length)}`)
      expect([400, 404, 414]).toContain(reply.status)
      problemOf(reply)
    }
  })
})

describe('rubbish on the socket', () => {
  const start = 'GET /healthz HTTP/1.1\r\nHost: x\r\n'
  it.for([
    ['a header of 100 KB', `${start}X-Long: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['10,000 headers', `${start}${'a: b\r\n'.repeat(10_000)}\r\n`],
    ['a URL of 100 KB', `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['no HTTP', 'hello, is anybody there?\r\n\r\n'],
    ['a TLS hello', Buffer.from('16030100a5010000a10303deadbeef', 'hex')],
    ['zeros', Buffer.alloc(5000)],
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['a version of the future', 'GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['HTTP/2 without asking', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['two lengths', `POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    [
      'a length and chunks',
      `POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n`,
    ],
    ['a length that is none', `POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n`],
    ['a chunk that is none', `POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n`],
    ['a header without a colon', `${start}rubbish\r\n\r\n`],
    ['a space before the colon', `${start}X-A : b\r\n\r\n`],
    ['a folded header', `${start}X-A: b\r\n c: d\r\n\r\n`],
    ['a bare line feed in a header', `${start}X-A: b\nX-B: c\r\n\r\n`],
    ['an expectation nobody has', `${start}Expect: miracles\r\nConnection: close\r\n\r\n`],
    ['a method nobody knows', 'BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n'],
  ] as const)('is answered with a refusal: %s', async ([, text]) => {
    const reply = await say(await server.dial(), text)
    expect(reply).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect(reply).not.toMatch(/ 200 OK|node_modules|at .*\.[jt]s:/)
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
  })

  it('behind good requests ends the connection with a refusal', async () => {
    const status = `GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
    const reply = await say(
      await server.dial(),
      `${status}${status}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nrubbish\r\n\r\n`,
    )
    // Node reads ahead: what was asked before in the same packet may not get its answer any more.
    expect(reply.match(/HTTP\/1\.1 \d+/g)?.at(-1)).toBe('HTTP/1.1 400')
    expect((await ask('GET', '/api/v1/status')).status).toBe(200)
  })

  it('asks for a token on every request of a connection', async () => {
    const good = `GET /api/v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
    const bare = 'GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\n'
    const last = 'GET /api/v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    const reply = await say(await server.dial(), good + bare + good + last)
    expect(reply.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401', 'HTTP/1.1 200', 'HTTP/1.1 401'])
  })

  it.for(['CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n', 'CONNECT /api/v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n'])(
    'is no proxy: %j',
    async text => {
      expect(await say(await server.dial(), text)).not.toMatch(/^HTTP\/1\.1 2/)
      expect((await server.ask('GET', '/healthz')).status).toBe(200)
    },
  )

  it('does not open the door by an upgrade', async () => {
    const upgrade =
      'GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    expect(await say(await server.dial(), upgrade)).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('from a client that hangs up at once, a thousand times, does no harm', async () => {
    for (let round = 0; round < 10; round++) {
      const sockets = await Promise.all(Array.from({ length: 100 }, () => server.dial()))
      for (const [index, socket] of sockets.entries()) {
        socket.on('error', () => {})
        if (index % 2 === 0) socket.write('GET /api/v1/status HTTP/1.1\r\nHos')
        socket.resetAndDestroy()
      }
    }
    expect((await ask('GET', '/api/v1/status')).status).toBe(200)
  })

  it('of a thousand requests on one connection is answered in order', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      const statuses = await Promise.all(
        Array.from(
          { length: 1000 },
          () =>
            new Promise<number>((resolve, reject) => {
              get(`${server.url}/healthz`, { agent }, response => {
                response.resume().once('end', () => resolve(response.statusCode ?? 0))
              }).once('error', reject)
            }),
        ),
      )
      expect(new Set(statuses)).toEqual(new Set([200]))
    } finally {
      agent.destroy()
    }
  })
})

describe('after all that', () => {
  it('the server lives, and nothing has changed', async () => {
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
    expect((await server.root('GET', '/api/v1/status')).status).toBe(200)
    expect(await server.store.revision()).toBe(revision)
    expect(await server.site.git('status', '--porcelain')).toBe('')
  })
})
