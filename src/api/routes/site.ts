import { z } from 'zod'
import { listGenerations } from '../../control/generations.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { AppliedReply, GenerationList, PlanReply } from '../schemas.ts'

const tags = ['site']

export const siteRoutes: Routes = (app, { control, store }) => {
  const allowDirty = z.boolean().default(false).describe('Take changes that are not committed, too.')
  const plan = z.strictObject({
    allowDirty: z.stringbool().default(true).describe('Look at changes that are not committed, too.'),
  })

  typed(app).get(
    '/api/v1/site/plan',
    {
      config: { role: 'viewer' },
      schema: { summary: 'What applying the site would change', tags, querystring: plan, response: { 200: PlanReply } },
    },
    async ({ query }) => {
      const { generation, commit, tree, dirty, diff } = await control.plan(query)
      return { generation, commit, tree, dirty: [...dirty], diff: { ...diff, changes: [...diff.changes] } }
    },
  )

  const apply = z.strictObject({
    allowDirty,
    expect: z
      .strictObject({ tree: z.string().max(64), generation: z.int() })
      .optional()
      .describe('Only if this is still what the plan said.'),
  })
  typed(app).post(
    '/api/v1/site/apply',
    {
      config: { role: 'operator' },
      schema: { summary: 'Make the site the desired state', tags, body: apply, response: { 200: AppliedReply } },
    },
    async request => control.apply(actorOf(request), request.body) as Promise<AppliedReply>,
  )

  typed(app).get(
    '/api/v1/site/generations',
    {
      config: { role: 'viewer' },
      schema: { summary: 'What was applied, newest first', tags, response: { 200: GenerationList } },
    },
    async () => ({ items: await listGenerations(store) }),
  )

  const revert = z.strictObject({ generation: z.int().min(1) })
  typed(app).post(
    '/api/v1/site/revert',
    {
      config: { role: 'operator' },
      schema: {
        summary: 'Go back to an earlier generation, in a new commit',
        tags,
        body: revert,
        response: { 200: AppliedReply },
      },
    },
    async request => control.revert(actorOf(request), request.body.generation) as Promise<AppliedReply>,
  )
}
