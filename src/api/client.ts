import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { MusterError, isErrorCode, messageOf } from '../lib/errors.ts'
import type { EventReply, ProblemReply } from './schemas.ts'

/** Where the server is: `http://host:port`, `https://host:port`, or the path of its unix socket. */
export interface ClientOptions {
  readonly server: string
  readonly token?: string | undefined
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>

/** The one way the command line talks to a server. */
export class ApiClient {
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
  }

  async get<Reply>(path: string, query: Query = {}): Promise<Reply> {
    return (await readJson(await this.#send('GET', withQuery(path, query)))) as Reply
  }

  async send<Reply>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Reply> {
    return (await readJson(await this.#send(method, path, { body }))) as Reply
  }

  /** Every item of a list, page by page. */
  async *pages<Item>(path: string, query: Query = {}): AsyncGenerator<readonly Item[]> {
    let after: string | number | undefined = query['after'] as string | undefined
    do {
      const page: { items: Item[]; next: string | number | null } = await this.get(path, { ...query, after })
      yield page.items
      after = page.next ?? undefined
    } while (after !== undefined)
  }

  /** Events as they happen, until the connection ends. */
  async *events(query: Query = {}): AsyncGenerator<EventReply> {
    const response = await this.#send('GET', withQuery('/api/v1/events/stream', query), {
      headers: { accept: 'text/event-stream' },
    })
    for await (const line of lines(response)) {
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as EventReply
    }
  }

  /** The reply's body as a file, which appears whole or not at all. */
  async download(path: string, file: string): Promise<void> {
    const response = await this.#send('POST', path)
    const temporary = `${file}.part`
    try {
      await pipeline(response, createWriteStream(temporary, { mode: 0o600 }))
      await rename(temporary, file)
    } catch (error) {
      await rm(temporary, { force: true })
      if ((error as NodeJS.ErrnoException).code === undefined) throw error
      throw new MusterError('FILE_UNWRITABLE', `${file} cannot be written: ${messageOf(error)}`, { cause: error })
    }
  }

  /** The reply's body as it comes, from that byte on. */
  async stream(path: string, offset: number, signal?: AbortSignal): Promise<IncomingMessage> {
    const headers: Record<string, string> = offset === 0 ? {} : { range: `bytes=${offset}-` }
    const response = await this.#send('GET', path, { headers, signal, silence: SILENCE })
    if (offset === 0 || response.headers['content-range']?.startsWith(`bytes ${offset}-`)) return response
    response.destroy()
    throw new MusterError('INTERNAL', `the server did not go on at byte ${offset}`)
  }

  /** Sends a body as it is read. */
  async upload(path: string, content: Readable, size: number, signal?: AbortSignal): Promise<void> {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(size) }
    const response = await this.#send('PUT', path, { content, headers, signal, silence: SILENCE })
    response.resume()
  }

  async #send(method: string, path: string, sending: Sending = {}): Promise<IncomingMessage> {
    const { server, token } = this.#options
    const { body, content, headers, signal, silence } = sending
    const isUrl = /^https?:\/\//.test(server)
    const text = body === undefined ? undefined : JSON.stringify(body)
    const options = {
      method,
      headers: {
        ...headers,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
      ...(signal !== undefined && { signal }),
    }
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const fail = (error: Error): void => reject(signal?.aborted === true ? aborted() : unreachable(server, error))
      try {
        const request = isUrl
          ? (server.startsWith('https') ? https : http).request(new URL(path, server), options, resolve)
          : http.request({ ...options, socketPath: server, path }, resolve)
        request.on('error', fail)
        if (silence !== undefined)
          request.setTimeout(silence, () => request.destroy(new Error('it has stopped answering')))
        if (content === undefined) request.end(text)
        else send(content, request, reject)
      } catch (error) {
        reject(new MusterError('USAGE', `${server} is not a server address`, { cause: error }))
      }
    })
    if ((response.statusCode ?? 500) < 400) return response
    const problem = await problemOf(response)
    content?.destroy()
    throw problem
  }
}

interface Sending {
  /** As JSON. */
  readonly body?: unknown
  /** As it is. */
  readonly content?: Readable
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which a connection on which nothing moves is given up. */
  readonly silence?: number
}

const SILENCE = 60_000
/** After all was sent: it may take the other side a while to bring it to disk. */
const LONG_SILENCE = 900_000

/** A server that refuses says so before it has read everything; then the rest is not sent. */
function send(content: Readable, request: ClientRequest, reject: (error: Error) => void): void {
  content.once('error', reject)
  content.once('end', () => request.setTimeout(LONG_SILENCE))
  content.once('close', () => content.readableEnded || request.destroy())
  content.pipe(request)
}

const aborted = (): MusterError => new MusterError('ABORTED', 'interrupted')

/** At line feeds only: readline also splits at other separators that may stand inside JSON. */
async function* lines(response: IncomingMessage): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8')) {
    const parts = (rest + String(chunk)).split('\n')
    rest = parts.pop() ?? ''
    yield* parts
  }
}

const withQuery = (path: string, query: Query): string => {
  const wanted = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, String(value)] as [string, string]],
  )
  return wanted.length === 0 ? path : `${path}?${new URLSearchParams(wanted)}`
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  if (response.statusCode === 204) {
    response.resume()
    return undefined
  }
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new MusterError('INTERNAL', 'the server answered with something that is not JSON', {
      cause: error,
      hint: 'is it really a muster server? check --server and MUSTER_SERVER',
    })
  }
}

async function problemOf(response: IncomingMessage): Promise<MusterError> {
  const reply = (await readJson(response).catch(() => undefined)) as Partial<ProblemReply> | undefined
  const { code, message, hint, details } = reply ?? {}
  if (code === undefined || message === undefined || !isErrorCode(code)) {
    return new MusterError('INTERNAL', `the server answered with status ${response.statusCode}`)
  }
  if (code === 'REQUEST_INVALID') {
    return new MusterError('USAGE', `the server does not take that: ${details?.join('; ') || message}`)
  }
  return new MusterError(code, message, {
    ...(hint !== undefined && { hint }),
    ...(details !== undefined && { details }),
  })
}

function unreachable(server: string, error: Error & { code?: string }): MusterError {
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such socket',
    ECONNREFUSED: 'nobody listens there',
    EACCES: 'only root may use this socket',
  }
  return new MusterError(
    'SERVER_UNREACHABLE',
    `cannot reach the server at ${server}: ${reasons[error.code ?? ''] ?? error.message}`,
    { cause: error },
  )
}
