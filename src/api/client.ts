import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
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

  async send<Reply>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Reply> {
    return (await readJson(await this.#send(method, path, body))) as Reply
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
    const response = await this.#send('GET', withQuery('/api/v1/events/stream', query), undefined, {
      accept: 'text/event-stream',
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

  async #send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<IncomingMessage> {
    const { server, token } = this.#options
    const isUrl = /^https?:\/\//.test(server)
    const text = body === undefined ? undefined : JSON.stringify(body)
    const options = {
      method,
      headers: {
        ...headers,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    }
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const fail = (error: Error): void => reject(unreachable(server, error))
      try {
        const request = isUrl
          ? (server.startsWith('https') ? https : http).request(new URL(path, server), options, resolve)
          : http.request({ ...options, socketPath: server, path }, resolve)
        request.once('error', fail)
        request.end(text)
      } catch (error) {
        reject(new MusterError('USAGE', `${server} is not a server address`, { cause: error }))
      }
    })
    if ((response.statusCode ?? 500) >= 400) throw await problemOf(response)
    return response
  }
}

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
