import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import { type Routes, actorOf, typed } from '../context.ts'
import { parseRange } from '../../lib/range.ts'
import { BlobReply, MissingBlobs, type ProblemReply, Sha256 } from '../schemas.ts'

const tags = ['images']
const MAX_BLOB = 64 * 2 ** 30

export const blobRoutes: Routes = (app, { images, store, maxBlob = MAX_BLOB }) => {
  const params = z.strictObject({ sha256: Sha256 })
  // HEAD has a route of its own: the one Fastify would add reads the file to its end.
  typed(app).get(
    '/api/v1/blobs/:sha256',
    {
      exposeHeadRoute: false,
      config: { role: 'viewer', slow: true },
      schema: { summary: 'The bytes of a digest, or a part of them (Range)', tags, params },
    },
    async (request, reply) => {
      const { sha256 } = request.params
      if (knows(request, sha256)) return describeBlob(reply, sha256).status(304).send()
      const { handle, size } = await images.openBlob(sha256)
      const range = parseRange(rangeOf(request, sha256), size)
      describeBlob(reply, sha256)
      if (range === 'unsatisfiable') {
        await handle.close()
        return reply.status(416).header('content-range', `bytes */${size}`).type('application/json').send(BEYOND)
      }
      void reply.header('content-length', range === undefined ? size : range.end - range.start + 1)
      if (range !== undefined)
        void reply.status(206).header('content-range', `bytes ${range.start}-${range.end}/${size}`)
      return reply.send(handle.createReadStream(range))
    },
  )
  typed(app).head(
    '/api/v1/blobs/:sha256',
    { config: { role: 'viewer' }, schema: { hide: true, params } },
    async (request, reply) => {
      const { sha256 } = request.params
      const { handle, size } = await images.openBlob(sha256)
      await handle.close()
      if (knows(request, sha256)) return describeBlob(reply, sha256).status(304).send()
      return describeBlob(reply, sha256).header('content-length', size).send()
    },
  )

  typed(app).post(
    '/api/v1/blobs/missing',
    {
      // Whoever asks is about to send: what is here stays until then.
      config: { role: 'operator' },
      schema: {
        summary: 'Which of these blobs are not here',
        tags,
        body: MissingBlobs,
        response: { 200: MissingBlobs },
      },
    },
    async ({ body }) => ({ digests: await images.missing(body.digests) }),
  )

  // Only here is a body a stream.
  void app.register(async inner => {
    inner.removeAllContentTypeParsers()
    inner.addContentTypeParser('application/octet-stream', (_, payload, done) => done(null, payload))
    typed(inner).put(
      '/api/v1/blobs/:sha256',
      {
        config: { role: 'operator', slow: true },
        schema: {
          summary: 'Store the bytes of a digest (application/octet-stream)',
          tags,
          params,
          response: { 200: BlobReply },
        },
      },
      async request => {
        const { sha256 } = request.params
        if (Number(request.headers['content-length'] ?? 0) > maxBlob)
          throw new MusterError('BODY_TOO_LARGE', `a blob may have ${maxBlob} bytes`)
        const blob = await images.receive(sha256, bodyOf(request), maxBlob)
        const actor = actorOf(request)
        await store.commit([], [{ kind: 'blob.stored', actor: actor.name, from: actor.from, data: blob }])
        return blob
      },
    )
  })
}

const BEYOND: ProblemReply = {
  code: 'REQUEST_INVALID',
  message: 'the range begins behind the end',
  hint: 'see Content-Range for how long it is',
  details: [],
}

const etag = (sha256: string): string => `"${sha256}"`

/** What a digest stands for never changes. Private: caches between do not know who may read it. */
const describeBlob = (reply: FastifyReply, sha256: string): FastifyReply =>
  reply
    .header('etag', etag(sha256))
    .header('cache-control', 'private, max-age=31536000, immutable')
    .header('accept-ranges', 'bytes')
    .type('application/octet-stream')

/** Whoever has it already is not sent it again. */
const knows = ({ headers }: FastifyRequest, sha256: string): boolean =>
  (headers['if-none-match'] ?? '').split(',').some(tag => tag.trim() === etag(sha256))

/** A part is wanted only if it is of the same content as before (If-Range). */
const rangeOf = ({ headers }: FastifyRequest, sha256: string): string | undefined =>
  headers['if-range'] === undefined || headers['if-range'] === etag(sha256) ? headers.range : undefined

/** The body as it arrives. After a failure of ours the rest of it is ignored: its sender is to see the reply. */
async function* bodyOf({ body, raw }: FastifyRequest): AsyncGenerator<Buffer> {
  if (body !== raw) throw new MusterError('REQUEST_INVALID', 'there is no body of the type application/octet-stream')
  try {
    yield* raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
    // From here on it is we who are slow: it has to be brought to disk.
    raw.setTimeout(0)
  } catch (error) {
    throw raw.complete ? error : new MusterError('ABORTED', 'the upload was cut off', { cause: error })
  } finally {
    raw.resume()
  }
}
