import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import type { Event } from '../../state/store.ts'
import { type Routes, typed } from '../context.ts'
import { EventPage, type EventReply } from '../schemas.ts'

const tags = ['events']
const HEARTBEAT = 15_000

export const eventRoutes: Routes = (app, { store, stopping }) => {
  const filter = z.strictObject({
    after: z.coerce.number().int().min(0).optional().describe('Only what came after this revision.'),
    before: z.coerce.number().int().min(1).optional().describe('Only what came before this revision.'),
    kind: z.string().max(100).optional().describe('site.applied, or site.* for all of them.'),
    limit: z.coerce.number().int().min(1).max(10_000).default(1000),
    order: z.enum(['oldest', 'newest']).default('oldest').describe('Which come first.'),
  })
  typed(app).get(
    '/api/v1/events',
    {
      config: { role: 'viewer' },
      schema: { summary: 'Events of the past, in pages', tags, querystring: filter, response: { 200: EventPage } },
    },
    async ({ query }) => {
      const { order, limit, ...rest } = query
      const wanted = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
      const items = await store.events({ ...wanted, limit, newestFirst: order === 'newest' })
      return { items: items as EventReply[], next: items.length === limit ? (items.at(-1)?.revision ?? null) : null }
    },
  )

  const follow = z.strictObject({
    after: z.coerce
      .number()
      .int()
      .min(0)
      .optional()
      .describe('Begin after this revision; with what is new unless said.'),
    kind: z.string().max(100).optional(),
  })
  typed(app).get(
    '/api/v1/events/stream',
    {
      exposeHeadRoute: false,
      config: { role: 'viewer' },
      schema: {
        summary: 'Events as they happen (server-sent events); resumes from Last-Event-ID',
        tags,
        querystring: follow,
      },
    },
    async (request, reply) => {
      const id = request.headers['last-event-id']
      const newest = await store.revision()
      const after = typeof id === 'string' && /^\d{1,15}$/.test(id) ? Number(id) : (request.query.after ?? newest)
      if (after > newest)
        throw new MusterError('REVISION_AHEAD', `revision ${after} has not happened: the newest is ${newest}`)
      const body = new PassThrough()
      const gone = new AbortController()
      body.once('close', () => gone.abort())
      const events = store.watch(after, AbortSignal.any([gone.signal, stopping]))
      pour(events, request.query.kind, body).catch((error: unknown) => body.destroy(error as Error))
      void reply.type('text/event-stream').header('cache-control', 'no-store').header('x-accel-buffering', 'no')
      return reply.send(body)
    },
  )
}

/** A reader that is slow is waited for: the watch catches up from the log, nothing queues here. */
async function pour(
  batches: AsyncIterable<readonly Event[]>,
  kind: string | undefined,
  body: PassThrough,
): Promise<void> {
  body.write(': hello\n\n')
  const heartbeat = setInterval(() => body.writableNeedDrain || body.write(': still here\n\n'), HEARTBEAT)
  try {
    for await (const batch of batches) {
      const text = batch
        .filter(event => matches(event.kind, kind))
        .map(format)
        .join('')
      if (text !== '' && !body.write(text)) await drained(body)
    }
  } finally {
    clearInterval(heartbeat)
    body.end()
  }
}

const format = (event: Event): string =>
  `id: ${event.revision}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`

const matches = (kind: string, wanted: string | undefined): boolean =>
  wanted === undefined || kind === wanted || (wanted.endsWith('.*') && kind.startsWith(wanted.slice(0, -1)))

const drained = (body: PassThrough): Promise<unknown> => {
  const seen = new AbortController()
  const either = Promise.race([
    once(body, 'drain', { signal: seen.signal }),
    once(body, 'close', { signal: seen.signal }),
  ])
  return either.finally(() => seen.abort())
}
