import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import type { AuthorityFacts } from '../../ca/authority.ts'
import { type ApiContext, type Routes, actorOf, typed } from '../context.ts'
import { AuthorityReply } from '../schemas.ts'

const tags = ['trust']

/** By what nodes know the server, and the server nodes. No key of it ever leaves the server. */
export const caRoutes: Routes = (app, { control, store, trust }) => {
  typed(app).get(
    '/api/v1/ca',
    {
      config: { role: 'viewer' },
      schema: { summary: 'The certificate authority of this server', tags, response: { 200: AuthorityReply } },
    },
    async () => {
      const { authority } = needTrust(trust)
      return replyOf(authority.pem, authority.facts())
    },
  )

  typed(app).post(
    '/api/v1/ca/renew',
    {
      config: { role: 'operator' },
      schema: { summary: 'A new certificate for the server, at once', tags, response: { 200: AuthorityReply } },
    },
    async request => {
      const { authority } = needTrust(trust)
      const facts = await authority.renew()
      const { name: actor, from } = actorOf(request)
      const data = { fingerprint: facts.server?.fingerprint, until: facts.server?.until }
      await store.commit([], [{ kind: 'ca.renewed', actor, from, data }])
      return replyOf(authority.pem, facts)
    },
  )

  typed(app).post(
    '/api/v1/nodes/:name/revoke',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Until its next boot the node gets nothing that only it may know',
        tags,
        params: z.strictObject({ name: z.string().max(63) }),
      },
    },
    async (request, reply) => {
      const { name } = request.params
      if (control.desired.get(name) === undefined) throw new MusterError('NODE_UNKNOWN', `no node is named ${name}`)
      await needTrust(trust).revoke(name)
      const { name: actor, from } = actorOf(request)
      await store.commit([], [{ kind: 'node.revoked', nodes: name, actor, from }])
      return reply.status(204).send()
    },
  )
}

function needTrust(trust: ApiContext['trust']): NonNullable<ApiContext['trust']> {
  if (trust === undefined) throw new MusterError('CA_MISSING', 'this server boots no nodes and has no authority')
  return trust
}

const replyOf = (certificate: string, { authority, sha256, server }: AuthorityFacts): AuthorityReply => ({
  authority,
  sha256,
  certificate,
  ...(server !== undefined && { server: { ...server, hosts: [...server.hosts] } }),
})
