import { rm } from 'node:fs/promises'
import { Writable } from 'node:stream'
import fastify from 'fastify'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import { operator } from '../control/testing.ts'
import { sendProblem } from './problems.ts'
import { ProblemReply } from './schemas.ts'
import { type Reply, type TestServer, request, startTestServer } from './testing.ts'

const PATH = process.env['PATH']
afterEach(() => {
  process.env['PATH'] = PATH
})

/** A reply that says that it was our fault, and nothing of how we work inside. */
function expectDiscreet(reply: Reply, server: Pick<TestServer, 'site' | 'data'>): void {
  expect(reply.status).toBe(500)
  expect(ProblemReply.parse(reply.body)).toMatchObject({ code: 'INTERNAL', details: [] })
  for (const secret of [server.site.dir, server.data, '/tmp', 'node_modules', 'src/', '.ts', 'git', 'ENOENT'])
    expect(reply.text).not.toContain(secret)
}

const collect = (): { logger: pino.Logger; lines: () => Record<string, unknown>[] } => {
  const chunks: string[] = []
  const logger = pino(
    new Writable({
      write(chunk: Buffer, _, done) {
        chunks.push(chunk.toString('utf8'))
        done()
      },
    }),
  )
  return { logger, lines: () => chunks.map(chunk => JSON.parse(chunk) as Record<string, unknown>) }
}

describe('a failure inside the server', () => {
  it('of git is told as INTERNAL, with the reason in the log only, and passes when git is back', async () => {
    const { logger, lines } = collect()
    await using server = await startTestServer({ logger })
    await server.control.apply(operator)
    process.env['PATH'] = '/nowhere'
    const replies = [
      await server.root('GET', '/api/v1/site/plan'),
      await server.root('POST', '/api/v1/site/apply', {}),
      await server.root('POST', '/api/v1/site/revert', { generation: 1 }),
      await server.root('PATCH', '/api/v1/nodes', { nodes: 'n001', set: { 'vars.x': 1 } }),
    ]
    process.env['PATH'] = PATH
    for (const reply of replies) expectDiscreet(reply, server)
    const errors = lines().filter(line => line['msg'] === 'request failed')
    expect(errors).toHaveLength(replies.length)
    expect(JSON.stringify(errors)).toContain('is not installed')
    expect((await server.root('GET', '/api/v1/site/plan')).status).toBe(200)
    expect(await server.site.git('status', '--porcelain')).toBe('')
  })

  it('of a repository that vanished is told as INTERNAL', async () => {
    await using server = await startTestServer()
    await server.control.apply(operator)
    await rm(`${server.site.dir}/.git`, { recursive: true })
    expectDiscreet(await server.root('GET', '/api/v1/site/plan'), server)
    expectDiscreet(await server.root('POST', '/api/v1/site/apply', {}), server)
    // What is in force needs no repository.
    expect((await server.root('GET', '/api/v1/nodes/n001')).status).toBe(200)
  })

  it('of the disk is told as INTERNAL', async () => {
    await using server = await startTestServer()
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = '/nowhere'
    const reply = await server.root('POST', '/api/v1/backup')
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
    expectDiscreet(reply, server)
    expect((await server.root('POST', '/api/v1/backup')).status).toBe(200)
  })
})

describe('what a handler throws', () => {
  it.for([
    ['a programming error', () => new TypeError('cannot read properties of undefined, in /srv/muster/src/secret.ts')],
    ['a system error', () => Object.assign(new Error('ENOENT: /var/lib/muster/state.db'), { code: 'ENOENT' })],
    ['an error that claims a status', () => Object.assign(new Error('secret'), { statusCode: 503 })],
    [
      'a program that failed',
      () => new MusterError('EXEC_FAILED', 'git -C /tmp/x failed', { details: ['fatal: /tmp/x'] }),
    ],
    ['an INTERNAL with a path', () => new MusterError('INTERNAL', '/var/lib/muster/state.db: unable to open')],
    [
      'damaged state',
      () => new MusterError('STATE_DAMAGED', '/var/lib/muster/state.db: malformed', { details: ['page 7'] }),
    ],
    ['state that is too new', () => new MusterError('STATE_NEWER', '/var/lib/muster/state.db: has layout 9')],
    ['no error', () => 'just /tmp text'],
  ] satisfies [string, () => unknown][])(
    'that is %s becomes a problem that tells nothing of the inside',
    async ([, make]) => {
      const app = fastify()
      app.setErrorHandler(sendProblem)
      app.get('/', async () => {
        throw make() as Error
      })
      await app.listen({ host: '127.0.0.1', port: 0 })
      try {
        const { hostname: host, port } = new URL(app.listeningOrigin)
        const reply = await request({ host, port }, 'GET', '/')
        expect(reply.status).toBe(500)
        expect(Object.keys(ProblemReply.parse(reply.body))).toEqual(['code', 'message', 'hint', 'details'])
        expect(reply.text).not.toMatch(/\/tmp|\/var\/lib|\/work|secret|undefined|page 7|git -C/)
      } finally {
        await app.close()
      }
    },
  )

  it('that a user can do something about is told in full', async () => {
    await using server = await startTestServer()
    const reply = await server.root('GET', '/api/v1/nodes/n999')
    expect(reply.status).toBe(404)
    expect(reply.text).toBe(
      JSON.stringify({
        code: 'NODE_UNKNOWN',
        message: 'no node is named n999',
        hint: 'list the nodes with: muster node ls',
        details: [],
      }),
    )
    await server.site.write('nodes.yaml', 'n001: { boot: { image: nope } }\n')
    await server.site.commit('A mistake')
    const invalid = await server.root('POST', '/api/v1/site/apply', {})
    expect(invalid.status).toBe(422)
    expect(invalid.body).toMatchObject({
      code: 'SITE_INVALID',
      message: 'the site has 1 error',
      details: [expect.stringMatching(/^nodes\.yaml:1:\d+: n001\.boot\.image: there is no image nope/)],
    })
  })
})
