import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { Logger } from 'pino'
import type { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { OWN_DISK, type PhaseSighting } from '../nodes/boots.ts'
import { Mac } from '../nodes/mac.ts'
import { machineId } from '../nodes/machines.ts'
import { BootId, Heartbeat, MachineFacts, PhaseReport, type Sighting } from '../nodes/reports.ts'
import type { Artefacts } from './artefacts.ts'
import { readBody } from './bodies.ts'
import { strangersBootId } from './boot-ids.ts'
import { type Decision, decideFor } from './decide.ts'
import type { Enrolment } from './enrolment.ts'
import { type WholeRequest, addFastLane } from './fast-lane.ts'
import { HeartbeatLines, hearRequest, hearSocket } from './heartbeats.ts'
import type { ViewIndex } from './index-view.ts'
import { type EnrolPlan, type Servers, firstScript, kernelArguments, machineScript } from './ipxe.ts'

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
  /** Where nodes are let in, if anywhere. */
  readonly trust?: NodeTrust | undefined
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

/** What makes a boot one that can prove which node it is. */
export interface NodeTrust {
  readonly enrolment: Pick<Enrolment, 'newBoot' | 'isOurs' | 'isHeeded' | 'hear' | 'ready'>
  /** Text of ca.pem. */
  readonly authority: string
  /** For a node that is to ask these servers; undefined while nobody listens. */
  readonly plan: (urls: readonly string[]) => EnrolPlan | undefined
  /** Of the list of files that is to be in force on a node. */
  readonly filesVersion: (node: string) => string | undefined
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
function quickAnswer(context: BootHttpContext, request: WholeRequest): string | undefined {
  const { method, url, body, server } = request
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
  const reply = script(context, request, query)
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
        return script(context, { server: serverOf(request), from: clientOf(request) }, query)
      case '/boot/step':
        return step(context, request, query)
      case '/discover/next':
        return next(context, request, query)
      case '/healthz':
        return text('ok\n')
      case '/ca.pem':
        if (context.trust !== undefined) return text(context.trust.authority)
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
const clientOf = (request: IncomingMessage): string => (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '')
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
function script(
  context: BootHttpContext,
  { server, from }: Pick<WholeRequest, 'server' | 'from'>,
  query: URLSearchParams,
): Reply | Promise<Reply> {
  const mac = Mac.safeParse(query.get('mac') ?? '')
  if (!mac.success) return problem(400, 'mac is not a MAC address', 'ask with ?mac=52-54-00-12-34-56')
  // The news that it asked for an address may not be here yet.
  const index = needView(context).begun(mac.data)
  const decision = decideFor(index, mac.data)
  const boot = newBootId(context, index, mac.data, from)
  const at = nowOf(context).toISOString()
  const seen = seenOf(decision)
  if (nodeSaid({ ...context, index: () => index }, mac.data, boot) === seen.node)
    context.tell({ ...seen, kind: 'phase', at, server, mac: mac.data, boot })
  const { shell } = index.view.settings.provision
  const urls = context.servers(server)
  const facts = { urls, boot, mac: mac.data, shell, enrol: context.trust?.plan(urls) }
  if (decision.kind !== 'discover') return text(machineScript(decision, facts))
  return Promise.resolve(context.discoveryExtras()).then(discoveryExtras =>
    text(machineScript(decision, discoveryExtras === undefined ? facts : { ...facts, discoveryExtras })),
  )
}

function newBootId({ trust }: BootHttpContext, index: ViewIndex, mac: string, from: string): string {
  const machine = index.machine(mac)
  return trust === undefined || machine === undefined ? strangersBootId() : trust.enrolment.newBoot(machine, mac, from)
}

/** Of whom this is said; undefined where it is said by nobody we know, or in the name of a node that is up. */
function nodeSaid({ index, trust }: BootHttpContext, mac: string, boot: string): string | undefined {
  const machine = index()?.machine(mac)
  return machine === undefined || trust?.enrolment.isHeeded(machine, mac, boot) === false
    ? undefined
    : machine.node.name
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
  const node = nodeSaid(context, mac.data, boot.data)
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
  const node = nodeSaid(context, said.mac, said.boot)
  if (node !== undefined && said.phase === 'ready') context.trust?.enrolment.ready(node, said.mac, said.boot)
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
  if (context.trust?.enrolment.hear(node, said) === false)
    return problem(403, `this is not the ${node} that was let in`, 'boot it anew')
  context.heard(node)
  const { mac, boot, image, kernel, hostname, addresses, health, files } = said
  const at = nowOf(context).toISOString()
  const status = { kind: 'status', at, server, mac, node, boot, kernel, hostname, addresses, health, files } as const
  context.tell(image === undefined ? status : { ...status, image })
  const wanted = context.trust?.filesVersion(node)
  const interval = `interval=${context.interval ?? 10}`
  return text(wanted === undefined ? `${interval}\n` : `${interval} files=${wanted}\n`)
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
  const had = BootId.safeParse(query.get('boot') ?? '').data
  const boot = isGood(context, decision, mac, had) ? had : newBootId(context, index, mac, clientOf(request))
  if (nodeSaid(context, mac, boot) === decision.node.name)
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
  const enrol = context.trust?.plan(urls)
  const plan = kernelArguments(decision, { urls, boot, mac, shell: index.view.settings.provision.shell, enrol })
  return text(plan.filter(word => word.startsWith('muster.')).join('\n') + '\n')
}

/** Where nodes are let in, the id that a stranger was given is not good enough. */
const isGood = (
  { trust }: BootHttpContext,
  { machine }: Extract<Decision, { kind: 'image' }>,
  mac: string,
  boot: string | undefined,
): boot is string =>
  boot !== undefined && (trust === undefined || (machine !== undefined && trust.enrolment.isOurs(machine, mac, boot)))

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

const read = <Schema extends z.ZodType>(
  { patience = PATIENCE }: BootHttpContext,
  request: IncomingMessage,
  schema: Schema,
  limit = BODY_LIMIT,
): Promise<z.output<Schema>> => readBody(request, schema, { limit, patience })
