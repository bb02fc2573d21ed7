import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import { MusterError } from '../lib/errors.ts'

export interface BodyLimits {
  /** Bytes. */
  readonly limit: number
  /** Milliseconds for all of it to come. */
  readonly patience: number
}

/** The body, if it is what was expected and no longer than that may be. */
export async function readBody<Schema extends z.ZodType>(
  request: IncomingMessage,
  schema: Schema,
  limits: BodyLimits,
): Promise<z.output<Schema>> {
  const body = await bodyOf(request, limits)
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    throw new MusterError('REQUEST_INVALID', 'the body is not JSON')
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new MusterError('REQUEST_INVALID', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is not right'}`)
}

/** By its events: an iterator over a stream costs more than all the rest of a heartbeat. */
function bodyOf(request: IncomingMessage, { limit, patience }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const timer = setTimeout(() => request.destroy(), patience)
    request.once('close', () => clearTimeout(timer))
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      // The rest flows by unseen: the connection must stay, the answer goes over it.
      if (length > limit) reject(new MusterError('BODY_TOO_LARGE', `a report may have ${limit} bytes`))
      else chunks.push(chunk)
    })
    request.once('error', reject)
    request.once('end', () =>
      resolve(chunks[0] !== undefined && chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)),
    )
  })
}
