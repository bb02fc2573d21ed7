/** A real server for tests: a site in git, a store, both sockets, and ways to talk to it as badly as one likes. */
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { type Socket, connect } from 'node:net'
import { join } from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import { pino } from 'pino'
import type { Role } from '../control/actor.ts'
import { type TestControl, startControl } from '../control/testing.ts'
import { Tokens } from '../control/tokens.ts'
import { Channels } from '../images/channels.ts'
import type { Roots } from '../images/store/collect.ts'
import { type ImageStore, openImageStore } from '../images/store/store.ts'
import { ViewCompiler } from '../boot/compile.ts'
import { Recorder } from '../nodes/recorder.ts'
import type { Limits } from './access.ts'
import type { AuthorityFacts } from '../ca/authority.ts'
import type { ApiContext, Trust } from './context.ts'
import type { Patience } from './patience.ts'
import type { EventReply } from './schemas.ts'
import { type RunningServer, startServer } from './server.ts'

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON. */
  readonly body: unknown
}

export interface Ask {
  readonly token?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface TestServer extends TestControl {
  readonly tokens: Tokens
  readonly images: ImageStore
  readonly channels: Channels
  readonly boot: Pick<ApiContext, 'recorder' | 'views' | 'bootServers'> & {
    readonly trust: ReturnType<typeof fixedTrust>
  }
  readonly server: RunningServer
  readonly url: string
  /** Path of the unix socket. */
  readonly socket: string
  /** As root, through the unix socket. */
  root(method: string, path: string, body?: unknown): Promise<Reply>
  /** Through TCP; without a token unless one is given. */
  ask(method: string, path: string, ask?: Ask): Promise<Reply>
  token(role: Role, name?: string): Promise<string>
  follow(path: string, headers?: Readonly<Record<string, string>>): Promise<Follower>
  /** A TCP connection on which nothing was said yet. */
  dial(): Promise<Socket>
}

export interface TestServerOptions {
  readonly limits?: Partial<Limits>
  readonly patience?: Partial<Patience>
  readonly imageRoots?: () => Promise<Roots>
  readonly files?: ApiContext['files']
  readonly maxBlob?: number
  readonly now?: () => Date
  readonly logger?: FastifyBaseLogger
}

/** Limits that no test meets by accident. */
const GENEROUS: Limits = { requestsPerSecond: 100_000, burst: 100_000, failuresPerSecond: 100_000 }

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const world = await startControl(options.now === undefined ? {} : { now: options.now })
  const { store, control, data } = world
  const tokens = await Tokens.load(store, options.now)
  const images = await openImageStore(join(data, 'images'), options.now)
  const channels = new Channels(store, images, options.now)
  const views = await ViewCompiler.start(store, images, pino({ enabled: false }))
  const recorder = await Recorder.load(store, {
    isNode: name => control.desired.get(name) !== undefined,
    site: () => views.index(),
  })
  const boot = { recorder, views, bootServers: () => ['http://10.77.0.1:7180'], trust: fixedTrust() }
  const socket = join(data, 'muster.sock')
  const server = await startServer(
    {
      version: '1.2.3-test',
      store,
      control,
      tokens,
      images,
      channels,
      ...boot,
      ...(options.files && { files: options.files }),
      ...(options.imageRoots && { imageRoots: options.imageRoots }),
      ...(options.maxBlob !== undefined && { maxBlob: options.maxBlob }),
    },
    {
      host: '127.0.0.1',
      port: 0,
      socket,
      limits: { ...GENEROUS, ...options.limits },
      ...(options.patience && { patience: options.patience }),
      ...(options.logger && { logger: options.logger }),
    },
  )
  const { hostname: host, port } = new URL(server.url)
  return {
    ...world,
    tokens,
    images,
    channels,
    boot,
    server,
    url: server.url,
    socket,
    root: (method, path, body) => request({ socketPath: socket }, method, path, { body }),
    ask: (method, path, ask) => request({ host, port }, method, path, ask),
    token: async (role, name = role) =>
      (await tokens.create({ name: 'test', role: 'admin', from: 'test' }, name, role, 3600)).token,
    follow: (path, headers) => follow(socket, path, headers),
    dial: () => dial(Number(port), host),
    async [Symbol.asyncDispose]() {
      await server.close()
      await views[Symbol.asyncDispose]()
      await world[Symbol.asyncDispose]()
    },
  }
}

const CERTIFICATE = {
  subject: 'CN=Muster CA 01234567',
  fingerprint: '00:11:22',
  from: '2026-03-01T12:00:00.000Z',
  until: '2036-03-01T12:00:00.000Z',
}

/** An authority that is only told of; what was revoked is there to be seen. */
function fixedTrust(): Trust & { readonly revoked: string[]; listens: boolean } {
  let renewals = 0
  const facts = (): AuthorityFacts => ({
    authority: CERTIFICATE,
    sha256: 'c'.repeat(64),
    server: { ...CERTIFICATE, subject: 'CN=Muster boot server', fingerprint: `33:${renewals}`, hosts: ['10.77.0.1'] },
  })
  const revoked: string[] = []
  return {
    authority: {
      pem: '-----BEGIN CERTIFICATE-----\n',
      facts,
      renew: async () => {
        renewals++
        return facts()
      },
    },
    listens: false,
    plan() {
      return this.listens ? { urls: ['https://10.77.0.1:7181'], ca: 'c'.repeat(64) } : undefined
    },
    revoke: async node => void revoked.push(node),
    revoked,
  }
}

type Target =
  | { readonly socketPath: string }
  | { readonly host: string; readonly port: string; readonly localAddress?: string }

/** On a connection of its own each time. A body that is no string is sent as JSON. */
export async function request(target: Target, method: string, path: string, ask: Ask = {}): Promise<Reply> {
  const { token, body, headers } = ask
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = http.request(
      {
        ...target,
        method,
        path,
        agent: false,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
      },
      resolve,
    )
    sent.once('error', reject)
    sent.end(text)
  })
  const received = await readAll(response)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: received,
    get body() {
      return JSON.parse(received) as unknown
    },
  }
}

async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

export function dial(port: number, host = '127.0.0.1'): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Says something on a connection as it stands, and gives all that comes back until the server hangs up. */
export async function say(socket: Socket, text: string | Buffer): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  // A server that refuses may hang up before it has read everything.
  socket.on('error', () => {})
  socket.write(text)
  await new Promise(resolve => socket.once('close', resolve))
  return Buffer.concat(chunks).toString('latin1')
}

/** Someone who follows the stream of events. */
export interface Follower {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** All that was received so far. */
  readonly events: readonly SentEvent[]
  /** Resolves once so many were received in all. */
  received(count: number): Promise<readonly SentEvent[]>
  /** Resolves when the server ends the stream; false when it was cut off instead. */
  readonly ended: Promise<boolean>
  leave(): void
}

export interface SentEvent {
  readonly id: string
  readonly event: string
  readonly data: EventReply
}

export async function follow(
  socketPath: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Follower> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    http.get({ socketPath, path, agent: false, headers }, resolve).once('error', reject)
  })
  const events: SentEvent[] = []
  const waiting = new Set<() => void>()
  let rest = ''
  response.setEncoding('utf8').on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    events.push(...blocks.filter(block => !block.startsWith(':')).map(parseEvent))
    for (const look of waiting) look()
  })
  const ended = new Promise<boolean>(resolve => {
    response.once('end', () => resolve(true))
    response.once('error', () => resolve(false))
    response.once('close', () => resolve(response.complete))
  })
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    received: count =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (events.length < count) return
          waiting.delete(look)
          resolve(events)
        }
        waiting.add(look)
        look()
        void ended.then(() => reject(new Error(`the stream ended after ${events.length} of ${count} events`)))
      }),
    ended,
    leave: () => void response.destroy(),
  }
}

function parseEvent(block: string): SentEvent {
  const lines = block.split('\n').map(line => /^(\w+): (.*)$/s.exec(line) ?? [])
  const field = (name: string): string => lines.find(([, key]) => key === name)?.[2] ?? ''
  return { id: field('id'), event: field('event'), data: JSON.parse(field('data')) as EventReply }
}
