import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Server, createServer } from 'node:https'
import type { Logger } from 'pino'
import { z } from 'zod'
import type { ServerCertificate } from '../ca/authority.ts'
import { MusterError } from '../lib/errors.ts'
import { Mac } from '../nodes/mac.ts'
import { BootId } from '../nodes/reports.ts'
import { readBody } from './bodies.ts'
import type { Credential } from './credentials.ts'
import type { Asker, Enrolment, Issued } from './enrolment.ts'
import type { NodeFiles } from './node-files.ts'

export interface NodeApiContext {
  readonly logger: Logger
  readonly enrolment: Pick<Enrolment, 'claim' | 'credential' | 'check' | 'renew'>
  readonly files: NodeFiles
  /** Milliseconds for the body of a request to come. */
  readonly patience?: number
}

const LIMIT = 16 * 1024
const PATIENCE = 20_000
/** Seconds after which a node that came too early asks again. */
const AGAIN = 3

const Hex = z.string().regex(/^[0-9a-f]{64}$/, 'is not 64 hex digits')
const ClaimBody = z.strictObject({ mac: Mac, boot: BootId, claim: Hex })
const ProofBody = z.strictObject({ mac: Mac, boot: BootId, token: Hex, secret: Hex })

const FILES = '/node/files'
const TEXT = { 'content-type': 'text/plain', 'cache-control': 'no-store' } as const

/**
 * What nodes are told that others must not know: over TLS, so that nodes know whom they ask, and to whoever shows a
 * credential. What is asked most, whether the list of files is still the same, takes the shortest way.
 */
export function createNodeApi(context: NodeApiContext, certificate: ServerCertificate): Server {
  const server = createServer(
    {
      ...certificate,
      minVersion: 'TLSv1.2',
      handshakeTimeout: 20_000,
      headersTimeout: 20_000,
      requestTimeout: 60_000,
      keepAliveTimeout: 15_000,
      connectionsCheckingInterval: 10_000,
      maxHeaderSize: 8192,
    },
    (request, response) => {
      try {
        const reply = route(context, request, response)
        if (reply !== undefined) reply.catch((error: unknown) => fail(context, request, response, error))
      } catch (error) {
        fail(context, request, response, error)
      }
    },
  )
  server.timeout = 120_000
  server.on('clientError', (_, socket) => socket.destroy())
  server.on('tlsClientError', (_, socket) => socket.destroy())
  return server
}

/** A promise only where something has to be waited for. */
function route(context: NodeApiContext, request: IncomingMessage, response: ServerResponse): Promise<void> | undefined {
  const { method, url = '/' } = request
  if (method === 'GET') {
    if (url === FILES) return sendList(context, request, response)
    if (url.startsWith(`${FILES}/`)) return sendContent(context, request, response, url.slice(FILES.length + 1))
    if (url === '/healthz') return say(response, 'ok\n')
  }
  if (method === 'POST') {
    switch (url) {
      case '/node/claim':
        return claim(context, request, response)
      case '/node/credential':
        return prove(context, request, response)
      case '/node/renew':
        request.resume()
        return issue(response, context.enrolment.renew(credentialOf(request), askerOf(request)))
    }
  }
  throw new MusterError('ROUTE_UNKNOWN', 'there is nothing here', { hint: 'see docs/how-to/trust-nodes.md' })
}

function sendList({ enrolment, files }: Sources, request: IncomingMessage, response: ServerResponse): undefined {
  const { node } = holder({ enrolment }, request)
  const list = files.list(node)
  if (list === undefined) {
    response.writeHead(204).end()
    return
  }
  const etag = `"${list.version}"`
  if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
  else response.writeHead(200, { ...TEXT, etag, 'content-length': list.text.length }).end(list.text)
}

function sendContent(
  { enrolment, files }: Sources,
  request: IncomingMessage,
  response: ServerResponse,
  sha256: string,
): undefined {
  const { node } = holder({ enrolment }, request)
  const content = Hex.safeParse(sha256).success ? files.content(node, sha256) : undefined
  if (content === undefined)
    throw new MusterError('ROUTE_UNKNOWN', 'no file of this node has that content', { hint: 'ask for its list anew' })
  const headers = { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' }
  response.writeHead(200, { ...headers, 'content-length': content.length }).end(content)
}

async function claim(context: NodeApiContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const said = await readBody(request, ClaimBody, limitsOf(context))
  say(response, `token=${await context.enrolment.claim({ ...said, ...askerOf(request) })}\n`)
}

async function prove(context: NodeApiContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const said = await readBody(request, ProofBody, limitsOf(context))
  issue(response, await context.enrolment.credential({ ...said, ...askerOf(request) }))
}

type Sources = Pick<NodeApiContext, 'enrolment' | 'files'>

const limitsOf = ({ patience = PATIENCE }: NodeApiContext) => ({ limit: LIMIT, patience })

function holder({ enrolment }: Pick<Sources, 'enrolment'>, request: IncomingMessage): Credential {
  const held = enrolment.check(credentialOf(request))
  if (held === undefined) throw worthless()
  return held
}

const credentialOf = ({ headers: { authorization = '' } }: IncomingMessage): string =>
  authorization.startsWith('Bearer ') ? authorization.slice('Bearer '.length) : ''

const worthless = (): MusterError => new MusterError('CREDENTIAL_INVALID', 'this credential is worth nothing')

function issue(response: ServerResponse, issued: Issued | undefined): undefined {
  if (issued === undefined) throw worthless()
  say(response, `credential=${issued.credential}\nexpires=${issued.seconds}\nbeat=${issued.beat}\n`)
}

function say(
  response: ServerResponse,
  body: string,
  status = 200,
  more: Readonly<Record<string, string>> = {},
): undefined {
  response.writeHead(status, { ...TEXT, ...more, 'content-length': Buffer.byteLength(body) }).end(body)
}

/** Ports below are for root alone, on every system that nodes run. */
const FIRST_OF_USERS = 1024

const plain = (address: string | undefined): string => (address ?? '').replace(/^::ffff:/, '')
const askerOf = ({ socket }: IncomingMessage): Asker => ({
  from: plain(socket.remoteAddress),
  isRoot: (socket.remotePort ?? FIRST_OF_USERS) < FIRST_OF_USERS,
  server: plain(socket.localAddress),
})

function fail({ logger }: NodeApiContext, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const isKnown = error instanceof MusterError
  // Nodes are switched off whenever it pleases somebody.
  if (!isKnown && !request.destroyed) logger.error({ err: error, path: request.url }, 'answer to a node failed')
  const [status, what, hint] = isKnown
    ? [error.status, error.message, error.hint]
    : [500, 'something went wrong here', 'ask again, or another server']
  // Of a body that is not wanted nothing more is read.
  const more = request.complete ? {} : { connection: 'close' }
  say(response, `error: ${what}\nhint: ${hint}\n`, status, {
    ...more,
    ...(status === 503 && { 'retry-after': String(AGAIN) }),
  })
}
