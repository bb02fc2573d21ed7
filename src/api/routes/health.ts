import { z } from 'zod'
import { currentGeneration } from '../../control/generations.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { StatusReply } from '../schemas.ts'

const Ok = z.strictObject({ status: z.literal('ok') })

export const healthRoutes: Routes = (app, context) => {
  typed(app).get(
    '/healthz',
    {
      config: { role: 'none' },
      schema: { summary: 'The process is alive', tags: ['server'], security: [], response: { 200: Ok } },
    },
    async () => ({ status: 'ok' as const }),
  )

  typed(app).get(
    '/readyz',
    {
      config: { role: 'none' },
      schema: { summary: 'The state can be read', tags: ['server'], security: [], response: { 200: Ok } },
    },
    async () => {
      await context.store.revision()
      return { status: 'ok' as const }
    },
  )

  typed(app).get(
    '/api/v1/status',
    {
      config: { role: 'viewer' },
      schema: { summary: 'Version, generation in force, counts', tags: ['server'], response: { 200: StatusReply } },
    },
    async request => ({
      version: context.version,
      site: context.control.workspace.dir,
      revision: await context.store.revision(),
      nodes: context.control.desired.nodes.size,
      generation: (await currentGeneration(context.store)).generation ?? null,
      role: actorOf(request).role,
    }),
  )
}
