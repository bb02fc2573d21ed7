import { chmod, lstat, rm } from 'node:fs/promises'
import { type RequestListener, type Server, createServer } from 'node:http'
import { connect } from 'node:net'
import swagger from '@fastify/swagger'
import fastify, { type FastifyBaseLogger, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { jsonSchemaTransform, validatorCompiler } from 'fastify-type-provider-zod'
import { MusterError } from '../lib/errors.ts'
import { DEFAULT_LIMITS, type Limits, guard } from './access.ts'
import type { Api, ApiContext } from './context.ts'
import { createMetrics } from './metrics.ts'
import { DEFAULT_PATIENCE, type Patience, limitBodies } from './patience.ts'
import { sendProblem } from './problems.ts'
import { backupRoutes } from './routes/backup.ts'
import { blobRoutes } from './routes/blobs.ts'
import { bootRoutes } from './routes/boot.ts'
import { caRoutes } from './routes/ca.ts'
import { eventRoutes } from './routes/events.ts'
import { fileRoutes } from './routes/files.ts'
import { groupRoutes } from './routes/groups.ts'
import { healthRoutes } from './routes/health.ts'
import { channelRoutes } from './routes/channels.ts'
import { imageRoutes } from './routes/images.ts'
import { machineRoutes } from './routes/machines.ts'
import { nodeRoutes } from './routes/nodes.ts'
import { siteRoutes } from './routes/site.ts'
import { tokenRoutes } from './routes/tokens.ts'

export interface ServerOptions {
  readonly host: string
  readonly port: number
  /** A socket that is listening already, instead of host and port. */
  readonly fd?: number
  readonly socket: string
  readonly logger?: FastifyBaseLogger
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
  readonly limits?: Partial<Limits>
  readonly patience?: Partial<Patience>
}

export interface RunningServer {
  /** http://127.0.0.1:7171, with the port really taken. */
  readonly url: string
  close(): Promise<void>
}

const BODY_LIMIT = 2 ** 20
/** More than any team has open; a flood beyond it is turned away at the door, and the unix socket stays free. */
const MAX_CONNECTIONS = 4096
/** Whoever connects has this long to say what it wants. */
const HEADERS_TIMEOUT = 10_000
/** When the server stops, requests under way have this long to end. */
const GRACE = 2000

export async function startServer(
  context: Omit<ApiContext, 'stopping'>,
  options: ServerOptions,
): Promise<RunningServer> {
  const stop = new AbortController()
  const localServer: { current?: Server } = {}
  const app = await buildApi(
    { ...context, stopping: stop.signal },
    options,
    request =>
      localServer.current !== undefined && (request.raw.socket as { server?: unknown }).server === localServer.current,
  )
  const where = options.fd === undefined ? { host: options.host, port: options.port } : { fd: options.fd }
  await app.listen(where as { host: string }).catch((error: NodeJS.ErrnoException) => {
    const why = LISTEN_PROBLEMS[error.code ?? ''] ?? error.message
    throw new MusterError('ADDRESS_UNUSABLE', `cannot listen on ${options.host}:${options.port}: ${why}`, {
      cause: error,
    })
  })
  try {
    localServer.current = await listenLocally(options.socket, (request, response) => app.routing(request, response))
  } catch (error) {
    await app.close()
    throw error
  }
  return {
    url: addressOf(app, options),
    async close() {
      stop.abort()
      const servers = [app.server, localServer.current]
      const local = new Promise(resolve => localServer.current?.close(resolve))
      localServer.current?.closeIdleConnections()
      // Whoever is in the middle of a request may finish it; whoever only holds a connection may not hold us up.
      const patience = setTimeout(() => servers.forEach(server => server?.closeAllConnections()), GRACE)
      await Promise.all([app.close(), local])
      clearTimeout(patience)
      await rm(options.socket, { force: true })
    },
  }
}

/** The whole API, not yet listening. */
export async function buildApi(
  context: ApiContext,
  options: Pick<ServerOptions, 'logger' | 'tls' | 'limits' | 'patience'>,
  isLocal: (request: FastifyRequest) => boolean,
): Promise<Api> {
  const limits = { headersTimeout: HEADERS_TIMEOUT, connectionsCheckingInterval: 5000 }
  const app = fastify({
    ...(options.logger === undefined ? { logger: false } : { loggerInstance: options.logger }),
    // Fastify takes the limits of the one it uses.
    ...(options.tls === undefined ? { http: limits } : { https: { ...options.tls, ...limits } }),
    bodyLimit: BODY_LIMIT,
    // Bodies have limits of their own: see `limitBodies`.
    requestTimeout: 0,
    keepAliveTimeout: 10_000,
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    trustProxy: false,
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: sendProblem,
  }) as unknown as Api
  app.server.maxConnections = MAX_CONNECTIONS
  app.setValidatorCompiler(validatorCompiler)
  // Replies are ours: they are checked against their schemas in tests, not on every request.
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler(sendProblem)
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      new MusterError('ROUTE_UNKNOWN', `there is no ${request.method} ${request.url.split('?')[0]}`),
      request,
      reply,
    ),
  )

  const metrics = createMetrics(context)
  // Before anything can refuse the request; told when the reply is over, which for a stream is when its reader leaves.
  app.addHook('onRequest', async (request, reply) => {
    const began = performance.now()
    reply.raw.once('close', () => {
      const ms = performance.now() - began
      metrics.count(request, reply, ms / 1000)
      logRequest(request, reply, ms)
    })
  })
  limitBodies(app, { ...DEFAULT_PATIENCE, ...options.patience })
  guard(app, context.tokens, isLocal, { ...DEFAULT_LIMITS, ...options.limits })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Muster',
        version: context.version,
        description: 'Errors are `{ code, message, hint, details }`.',
      },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    },
    transform: jsonSchemaTransform,
  })
  for (const routes of [
    healthRoutes,
    nodeRoutes,
    fileRoutes,
    bootRoutes,
    caRoutes,
    machineRoutes,
    groupRoutes,
    siteRoutes,
    imageRoutes,
    channelRoutes,
    blobRoutes,
    eventRoutes,
    tokenRoutes,
    backupRoutes,
  ])
    routes(app, context)
  metrics.routes(app, context)
  app.get('/api/v1/openapi.json', { config: { role: 'viewer' }, schema: { hide: true } }, async () => app.swagger())
  await app.ready()
  return app
}

function logRequest(request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const { method, actor, routeOptions } = request
  const fields = { method, path: routeOptions.url, status: reply.statusCode, ms: Math.round(ms) }
  request.log.info({ ...fields, actor: actor?.name, from: actor?.from ?? request.socket.remoteAddress }, 'request')
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'it is in use',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'that is not allowed',
}

async function listenLocally(path: string, listener: RequestListener): Promise<Server> {
  if (await answers(path)) throw new MusterError('STATE_LOCKED', `another muster listens on ${path}`)
  const before = await lstat(path).catch(() => undefined)
  if (before?.isSocket() === false)
    throw new MusterError('USAGE', `${path} is there already and is no socket`, {
      hint: 'choose another path with --socket',
    })
  await rm(path, { force: true })
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT, requestTimeout: 0 }, listener)
  // Born without access for others: between listening and a chmod anybody could connect.
  const mask = process.umask(0o177)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
    })
  } finally {
    process.umask(mask)
  }
  await chmod(path, 0o600)
  return server
}

const answers = (path: string): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

function addressOf(app: Api, options: ServerOptions): string {
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  return `${options.tls === undefined ? 'http' : 'https'}://${host}:${port}`
}
