import { z } from 'zod'
import { type Routes, actorOf, typed } from '../context.ts'
import { CreateToken, CreatedToken, TokenList } from '../schemas.ts'

const tags = ['tokens']

export const tokenRoutes: Routes = (app, { tokens }) => {
  typed(app).get(
    '/api/v1/tokens',
    { config: { role: 'admin' }, schema: { summary: 'List tokens', tags, response: { 200: TokenList } } },
    async () => ({ items: tokens.list() }),
  )
  typed(app).post(
    '/api/v1/tokens',
    {
      config: { role: 'admin' },
      schema: { summary: 'Make a token', tags, body: CreateToken, response: { 200: CreatedToken } },
    },
    async request => tokens.create(actorOf(request), request.body.name, request.body.role, request.body.seconds),
  )
  typed(app).delete(
    '/api/v1/tokens/:id',
    {
      config: { role: 'admin' },
      schema: {
        summary: 'Revoke a token',
        tags,
        params: z.strictObject({ id: z.string().max(64) }),
        response: { 200: z.strictObject({}) },
      },
    },
    async request => {
      await tokens.revoke(actorOf(request), request.params.id)
      return {}
    },
  )
}
