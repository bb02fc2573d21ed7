import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { operator } from '../../control/testing.ts'
import { AuthorityReply, EventPage, ProblemReply } from '../schemas.ts'
import { type Reply, type TestServer, startTestServer } from '../testing.ts'

let server: TestServer
let token: string
beforeEach(async () => {
  server = await startTestServer()
  token = await server.token('operator', 'olga')
  await server.control.apply(operator)
})
afterEach(() => server[Symbol.asyncDispose]())

const ask = (method: string, path: string): Promise<Reply> => server.ask(method, path, { token })
const lastEvent = async (): Promise<unknown> =>
  EventPage.parse((await ask('GET', '/api/v1/events?limit=1000')).body).items.at(-1)

describe('the authority', () => {
  it('is told of: certificates, nothing secret', async () => {
    const reply = AuthorityReply.parse((await ask('GET', '/api/v1/ca')).body)
    expect(reply).toMatchObject({
      authority: { subject: 'CN=Muster CA 01234567' },
      sha256: 'c'.repeat(64),
      certificate: '-----BEGIN CERTIFICATE-----\n',
      server: { fingerprint: '33:0', hosts: ['10.77.0.1'] },
    })
  })

  it('renews the certificate of the server, and it is known who said so', async () => {
    expect(AuthorityReply.parse((await ask('POST', '/api/v1/ca/renew')).body).server?.fingerprint).toBe('33:1')
    expect(await lastEvent()).toMatchObject({ kind: 'ca.renewed', actor: 'olga', data: { fingerprint: '33:1' } })
  })
})

describe('a node', () => {
  it('is revoked, and it is known by whom', async () => {
    expect((await ask('POST', '/api/v1/nodes/n001/revoke')).status).toBe(204)
    expect(server.boot.trust.revoked).toEqual(['n001'])
    expect(await lastEvent()).toMatchObject({ kind: 'node.revoked', nodes: 'n001', actor: 'olga' })
  })

  it('that is none is not', async () => {
    expect(ProblemReply.parse((await ask('POST', '/api/v1/nodes/n999/revoke')).body).code).toBe('NODE_UNKNOWN')
    expect(server.boot.trust.revoked).toEqual([])
  })

  it('shows in its script where it proves who it is, once somebody listens', async () => {
    const script = async (): Promise<string> => JSON.stringify((await ask('GET', '/api/v1/nodes/n001/boot')).body)
    expect(await script()).not.toContain('muster.enrol')
    server.boot.trust.listens = true
    const { boots } = (await ask('GET', '/api/v1/nodes/n001/boot')).body as { boots: string }
    expect((await script()).includes(`muster.enrol=https://10.77.0.1:7181 muster.ca=${'c'.repeat(64)}`)).toBe(
      boots === 'image',
    )
  })
})
