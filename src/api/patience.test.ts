import { createHash } from 'node:crypto'
import { type Socket, connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { type TestServer, say, startTestServer } from './testing.ts'

const SHORT = 300
const NEVER = 3_600_000
const BLOB = createHash('sha256').update('abcdef').digest('hex')

/** The beginning of a request; the body has more to it. */
const begin = (method: string, path: string, type: string, token = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: ${type}\r\nContent-Length: 6\r\nConnection: close\r\n\r\nabc`

const json = (token: string): string => begin('POST', '/api/v1/site/apply', 'application/json', token)
const blob = (token?: string): string => begin('PUT', `/api/v1/blobs/${BLOB}`, 'application/octet-stream', token)

const local = async (server: TestServer): Promise<Socket> => {
  const socket = connect(server.socket)
  await new Promise(resolve => socket.once('connect', resolve))
  return socket
}

describe('a body that does not come to its end', () => {
  it('is waited for so long, and then the connection is closed', async () => {
    await using server = await startTestServer({ patience: { body: SHORT, silence: NEVER } })
    const token = await server.token('operator')
    expect(await say(await server.dial(), json(token))).toMatch(/^HTTP\/1\.1 408 /)
    expect(await say(await local(server), json(token))).toMatch(/^HTTP\/1\.1 408 /)
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
  })

  it('is not waited for longer where images are sent, unless one may send them', async () => {
    await using server = await startTestServer({ patience: { body: SHORT, silence: NEVER } })
    expect(await say(await server.dial(), blob())).toMatch(/^HTTP\/1\.1 401 /)
    expect(await say(await server.dial(), blob(await server.token('viewer')))).toMatch(/^HTTP\/1\.1 403 /)
  })

  it('may take longer where images are sent, as long as it comes', async () => {
    await using server = await startTestServer({ patience: { body: SHORT, silence: NEVER } })
    const token = await server.token('operator')
    const slow = await server.dial()
    const reply = say(slow, blob(token))
    // Began later, and has had all the time there is when it ends.
    await say(await server.dial(), json(token))
    slow.write('def')
    expect(await reply).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('is not waited for without end even there, once nothing comes any more', async () => {
    await using server = await startTestServer({ patience: { body: NEVER, silence: SHORT } })
    expect(await say(await server.dial(), blob(await server.token('operator')))).toBe('')
    expect(await server.images.has(BLOB)).toBe(false)
  })

  it('counts as nothing for those who have no body to send', async () => {
    await using server = await startTestServer({ patience: { body: 1, silence: 1 } })
    const follower = await server.follow('/api/v1/events/stream')
    await say(await server.dial(), json(await server.token('operator')))
    await server.store.commit([], [{ kind: 'test.late', actor: 'test' }])
    expect((await follower.received(2)).map(event => event.event)).toEqual(['token.created', 'test.late'])
  })
})
