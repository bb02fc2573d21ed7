import type { ServerResponse } from 'node:http'
import { z } from 'zod'
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
      config: { role: 'viewer' },
      schema: {
        summary: 'Events as they happen (server-sent events); resumes from Last-Event-ID',
        tags,
        querystring: follow,
      },
    },
    async (request, reply) => {
      const resume = Number(request.headers['last-event-id'] ?? Number.NaN)
      const after =
        Number.isSafeInteger(resume) && resume >= 0 ? resume : (request.query.after ?? (await store.revision()))
      const gone = new AbortController()
      request.raw.socket.once('close', () => gone.abort())
      reply.hijack()
      await stream(reply.raw, store.watch(after, AbortSignal.any([gone.signal, stopping])), request.query.kind)
    },
  )
}

async function stream(
  response: ServerResponse,
  batches: AsyncIterable<readonly Event[]>,
  kind: string | undefined,
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  response.write(': hello\n\n')
  const heartbeat = setInterval(() => response.write(': still here\n\n'), HEARTBEAT)
  try {
    for await (const batch of batches) {
      const text = batch
        .filter(event => matches(event.kind, kind))
        .map(format)
        .join('')
      // A reader that is slow is waited for: the watch catches up from the log, nothing queues here.
      if (text !== '' && !response.write(text)) await drained(response)
    }
  } finally {
    clearInterval(heartbeat)
    response.end()
  }
}

const format = (event: Event): string =>
  `id: ${event.revision}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`

const matches = (kind: string, wanted: string | undefined): boolean =>
  wanted === undefined || kind === wanted || (wanted.endsWith('.*') && kind.startsWith(wanted.slice(0, -1)))

function drained(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
