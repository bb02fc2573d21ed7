import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { Logger } from 'pino'
import type { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { OWN_DISK, type PhaseSighting } from '../nodes/boots.ts'
import { Mac } from '../nodes/mac.ts'
import { machineId } from '../nodes/machines.ts'
import { BootId, Heartbeat, MachineFacts, PhaseReport, type Sighting } from '../nodes/reports.ts'
import type { Artefacts } from './artefacts.ts'
import { type Decision, decideFor } from './decide.ts'
import { type WholeRequest, addFastLane } from './fast-lane.ts'
import { HeartbeatLines, hearRequest, hearSocket } from './heartbeats.ts'
import type { ViewIndex } from './index-view.ts'
import { type Servers, firstScript, kernelArguments, machineScript } from './ipxe.ts'

/** What a boot server answers nodes from, and whom it tells what it saw. */
export interface BootHttpContext {
  readonly logger: Logger
  readonly artefacts: Artefacts
  /** What is in force now; undefined before the first site was applied. */
  readonly index: () => ViewIndex | undefined
  /** In the order nodes should ask, the one that was asked first. */
  readonly servers: (asked: string) => Servers['urls']
  readonly tell: (sighting: Sighting) => void
  readonly heard: (node: string) => void
  /** Bytes of a loader for UEFI HTTP boot. */
  readonly loader: (name: string) => Promise<Buffer | undefined>
  /** Digest of the second initramfs of the discovery system, once it is there. */
  readonly discoveryExtras: () => Promise<string | undefined> | string | undefined
  readonly now?: () => Date
  /** Milliseconds for the body of a request to come. */
  readonly patience?: number
  /** Seconds between heartbeats, ten unless said; each node adds a jitter of its own. */
  readonly interval?: number
}

const BODY_LIMIT = 16 * 1024
const PATIENCE = 60_000
/** A machine may have a hundred disks, and a neighbour on each of many ports. */
const FACTS_LIMIT = 256 * 1024
/** How long a machine that waits for its adoption waits before it asks again. */
const WAIT = 3

const SCRIPT = '/boot/script?'
const HEARTBEATS = '/node/heartbeats'

/** What is said in reply. */
interface Reply {
  readonly status: number
  readonly body: string
}
const text = (body: string, status = 200): Reply => ({ status, body })
const NOTHING: Reply = { status: 204, body: '' }
const problem = (status: number, what: string, hint: string): Reply => text(`error: ${what}\nhint: ${hint}\n`, status)

/**
 * What nodes talk to: plain HTTP, because loaders and the initramfs speak nothing else; what is fetched is checked by
 * digest. Written for storms: no framework, small answers worked out from memory.
 */
export function createBootHttp(context: BootHttpContext): Server {
  const server = createServer(
    // Headers must come soon; answers may take as long as they move, and heartbeats as long as a node runs.
    { headersTimeout: 20_000, requestTimeout: 0, keepAliveTimeout: 15_000, connectionsCheckingInterval: 10_000 },
    (request, response) => void handle(context, request, response),
  )
  server.timeout = 120_000
  server.on('clientError', (_, socket) => socket.destroy())
  addFastLane(server, {
    answer: request => quickAnswer(context, request),
    takeOver: ({ method, url, server }) =>
      method === 'POST' && url === HEARTBEATS
        ? (socket, body) => hearSocket(socket, body, linesOf(context, server))
        : undefined,
  })
  return server
}

/** To what is asked most, by machines we know. */
function quickAnswer(context: BootHttpContext, { method, url, body, server }: WholeRequest): string | undefined {
  const index = context.index()
  if (index === undefined) return undefined
  if (method === 'POST') {
    if (url !== '/node/heartbeat' || body.length > BODY_LIMIT) return undefined
    const said = Heartbeat.parse(JSON.parse(body.toString('utf8')))
    return index.machine(said.mac) && heartbeat(context, server, said).body
  }
  if (!url.startsWith(SCRIPT)) return undefined
  const query = new URLSearchParams(url.slice(SCRIPT.length))
  if (index.machine(Mac.parse(query.get('mac'))) === undefined) return undefined
  const reply = script(context, server, query)
  return reply instanceof Promise ? undefined : reply.body
}

async function handle(context: BootHttpContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const reply = await route(context, request, response)
    if (reply === undefined) return
    if (reply === NOTHING) response.writeHead(204).end()
    else answer(request, response, reply)
  } catch (error) {
    if (!response.headersSent) {
      const known = error instanceof MusterError
      // Nodes are switched off whenever it pleases somebody.
      if (!known && !request.destroyed)
        context.logger.error({ err: error, path: request.url }, 'answer to a node failed')
      const reply = known
        ? problem(error.status, error.message, error.hint)
        : problem(500, 'something went wrong here', 'ask again, or another server')
      response.writeHead(reply.status, { 'content-type': 'text/plain', connection: 'close' }).end(reply.body)
    } else response.destroy()
  }
}

function answer(request: IncomingMessage, response: ServerResponse, { status, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'text/plain', 'content-length': Buffer.byteLength(body) })
  response.end(request.method === 'HEAD' ? undefined : body)
}

async function route(
  context: BootHttpContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Reply | undefined> {
  const { method = 'GET', url = '/' } = request
  const cut = url.indexOf('?')
  const path = cut < 0 ? url : url.slice(0, cut)
  const reads = method === 'GET' || method === 'HEAD'
  if (reads && path.startsWith('/blob/')) {
    const sha256 = path.slice('/blob/'.length)
    if (!/^[0-9a-f]{64}$/.test(sha256)) return problem(400, 'that is no digest', 'ask for /blob/SHA256')
    await context.artefacts.send(sha256, request, response)
    return undefined
  }
  const query = new URLSearchParams(cut < 0 ? '' : url.slice(cut + 1))
  if (reads) {
    switch (path) {
      case '/boot.ipxe':
        return text(first(context, request))
      case '/boot/script':
        return script(context, serverOf(request), query)
      case '/boot/step':
        return step(context, request, query)
      case '/discover/next':
        return next(context, request, query)
      case '/healthz':
        return text('ok\n')
    }
    if (path.startsWith('/loader/')) return sendLoader(context, path.slice('/loader/'.length), request, response)
  }
  if (method === 'POST') {
    switch (path) {
      case '/node/report':
        return report(context, request, await read(context, request, PhaseReport))
      case '/node/heartbeat':
        return heartbeat(context, serverOf(request), await read(context, request, Heartbeat))
      case HEARTBEATS:
        await hearRequest(request, response, linesOf(context, serverOf(request)))
        return undefined
      case '/discover':
        return discover(context, request, await read(context, request, MachineFacts, FACTS_LIMIT))
    }
  }
  return problem(404, `there is no ${method} ${path.slice(0, 100)}`, 'see the documentation of boot servers')
}

const serverOf = (request: IncomingMessage): string => (request.socket.localAddress ?? '').replace(/^::ffff:/, '')
/** Of the random ones: Node draws those of many at once, where bytes cost a system call each time. */
const newBootId = (): string => randomUUID().replaceAll('-', '').slice(16)
const nowOf = (context: BootHttpContext): Date => context.now?.() ?? new Date()

const needView = (context: BootHttpContext): ViewIndex => {
  const index = context.index()
  if (index === undefined) throw new MusterError('BOOT_NOT_READY', 'this boot server has not been told of the site yet')
  return index
}

function first(context: BootHttpContext, request: IncomingMessage): string {
  const index = context.index()
  return firstScript({ urls: context.servers(serverOf(request)) }, index?.view.settings.provision.vlan)
}

/** Unless it needs what may not be made yet, it is there at once. */
function script(context: BootHttpContext, server: string, query: URLSearchParams): Reply | Promise<Reply> {
  const mac = Mac.safeParse(query.get('mac') ?? '')
  if (!mac.success) return problem(400, 'mac is not a MAC address', 'ask with ?mac=52-54-00-12-34-56')
  const index = needView(context)
  const decision = decideFor(index, mac.data)
  const boot = newBootId()
  const at = nowOf(context).toISOString()
  context.tell({ ...seenOf(decision), kind: 'phase', at, server, mac: mac.data, boot })
  const { shell } = index.view.settings.provision
  const facts = { urls: context.servers(server), boot, mac: mac.data, shell }
  if (decision.kind !== 'discover') return text(machineScript(decision, facts))
  return Promise.resolve(context.discoveryExtras()).then(discoveryExtras =>
    text(machineScript(decision, discoveryExtras === undefined ? facts : { ...facts, discoveryExtras })),
  )
}

/** What is seen of a machine that asks for its script. */
function seenOf(decision: Decision): Pick<PhaseSighting, 'phase' | 'node' | 'image' | 'detail'> {
  switch (decision.kind) {
    case 'image':
      return { phase: 'loader', node: decision.node.name, image: decision.image.digest }
    case 'disk':
      return { phase: 'loader', node: decision.node.name, detail: OWN_DISK }
    case 'discover':
      return { phase: 'loader' }
    case 'refuse':
      break
  }
  const failed = { phase: 'failed', detail: decision.problem.slice(0, 500) } as const
  return decision.node === undefined ? failed : { ...failed, node: decision.node.name }
}

/** What loaders tell: which file they are at, that they hand over, or that something failed. */
function step(context: BootHttpContext, request: IncomingMessage, query: URLSearchParams): Reply {
  const mac = Mac.safeParse(query.get('mac') ?? '')
  const boot = BootId.safeParse(query.get('boot') ?? '')
  const name = query.get('step')
  if (!mac.success || !boot.success || !['kernel', 'boot', 'failed'].includes(name ?? ''))
    return problem(400, 'that is no step of a boot', 'ask with boot, mac and step')
  const detail = (query.get('detail') ?? '').replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200)
  const node = context.index()?.machine(mac.data)?.node.name
  context.tell({
    kind: 'phase',
    at: nowOf(context).toISOString(),
    server: serverOf(request),
    mac: mac.data,
    ...(node !== undefined && { node }),
    boot: boot.data,
    phase: name === 'boot' ? 'kernel' : name === 'kernel' ? 'loader' : 'failed',
    ...(name === 'kernel' && { detail: 'fetches kernel and initramfs' }),
    ...(name === 'failed' && { detail: `the loader failed: ${detail === '' ? 'for no reason it knows' : detail}` }),
  })
  return text('ok\n')
}

function report(context: BootHttpContext, request: IncomingMessage, said: PhaseReport): Reply {
  const node = context.index()?.machine(said.mac)?.node.name
  context.tell({
    kind: 'phase',
    at: new Date(nowOf(context).getTime() - said.ago * 1000).toISOString(),
    server: serverOf(request),
    mac: said.mac,
    ...(node !== undefined && { node }),
    boot: said.boot,
    phase: said.phase,
    ...(said.detail !== undefined && { detail: said.detail }),
  })
  return NOTHING
}

function heartbeat(context: BootHttpContext, server: string, said: Heartbeat): Reply {
  const node = context.index()?.machine(said.mac)?.node.name
  // Of a machine that is no node any more nobody needs to know.
  if (node === undefined) return problem(404, 'this machine is no node of the site', 'it goes on, unwatched')
  context.heard(node)
  const { mac, boot, image, kernel, hostname, addresses, health } = said
  const at = nowOf(context).toISOString()
  const status = { kind: 'status', at, server, mac, node, boot, kernel, hostname, addresses, health } as const
  context.tell(image === undefined ? status : { ...status, image })
  return text(`interval=${context.interval ?? 10}\n`)
}

const linesOf = (context: BootHttpContext, server: string): HeartbeatLines =>
  new HeartbeatLines(said => heartbeat(context, server, said))

function discover(context: BootHttpContext, request: IncomingMessage, facts: MachineFacts): Reply {
  context.tell({ kind: 'machine', at: nowOf(context).toISOString(), server: serverOf(request), facts })
  return text(`id=${machineId(facts.mac)}\n`)
}

/** What a discovered machine does next: wait, or go on as the node it has become. */
function next(context: BootHttpContext, request: IncomingMessage, query: URLSearchParams): Reply {
  const id = query.get('id') ?? ''
  if (!/^[0-9a-f]{12}$/.test(id)) return problem(400, 'that is no id of a machine', 'post to /discover first')
  const mac = id.replaceAll(/(..)(?!$)/g, '$1:')
  const index = needView(context)
  const decision = decideFor(index, mac)
  if (decision.kind === 'disk') return text('reboot=1\n')
  if (decision.kind !== 'image') return text(`wait=${WAIT}\n`)
  // A whole image in one cpio can only be started by a loader.
  if (decision.form === 'cpio') return text('reboot=1\n')
  const boot = BootId.safeParse(query.get('boot') ?? '').data ?? newBootId()
  context.tell({
    kind: 'phase',
    at: nowOf(context).toISOString(),
    server: serverOf(request),
    mac,
    node: decision.node.name,
    boot,
    phase: 'initrd',
    detail: 'adopted while it ran the discovery system',
    image: decision.image.digest,
  })
  const urls = context.servers(serverOf(request))
  const plan = kernelArguments(decision, { urls, boot, mac, shell: index.view.settings.provision.shell })
  return text(plan.filter(word => word.startsWith('muster.')).join('\n') + '\n')
}

async function sendLoader(
  context: BootHttpContext,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Reply | undefined> {
  const bytes = /^[a-z0-9_.-]{1,64}$/i.test(name) ? await context.loader(name) : undefined
  if (bytes === undefined)
    return problem(404, 'there is no such loader', 'see the table of loaders in the documentation')
  response.writeHead(200, { 'content-type': 'application/efi', 'content-length': bytes.length })
  response.end(request.method === 'HEAD' ? undefined : bytes)
  return undefined
}

/** The body, if it is what was expected and no longer than that may be. */
async function read<Schema extends z.ZodType>(
  { patience = PATIENCE }: BootHttpContext,
  request: IncomingMessage,
  schema: Schema,
  limit = BODY_LIMIT,
): Promise<z.output<Schema>> {
  const body = await bodyOf(request, limit, patience)
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
function bodyOf(request: IncomingMessage, limit: number, patience: number): Promise<Buffer> {
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
