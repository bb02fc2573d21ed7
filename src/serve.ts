import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { type Logger, pino } from 'pino'
import { startServer } from './api/server.ts'
import { ViewCompiler } from './boot/compile.ts'
import { BootService } from './boot/service.ts'
import { Authority } from './ca/authority.ts'
import { siteDir } from './cli/connect.ts'
import type { Call } from './cli/define.ts'
import { readKeys } from './cli/keys.ts'
import { Control } from './control/control.ts'
import { currentGeneration } from './control/generations.ts'
import { Tokens } from './control/tokens.ts'
import { FileBook } from './files/book.ts'
import { parseKeyFile } from './lib/age.ts'
import { makeDirectory } from './lib/dirs.ts'
import { MusterError } from './lib/errors.ts'
import { Channels } from './images/channels.ts'
import { rootsOf } from './images/roots.ts'
import { openImageStore } from './images/store/store.ts'
import { exec } from './lib/exec.ts'
import { Recorder } from './nodes/recorder.ts'
import { serveBoots } from './serve-boots.ts'
import { type ServeOptions, parseListen } from './serve-options.ts'
import { SETTINGS, settingsOf } from './site/settings.ts'
import { openWorkspace } from './site/workspace.ts'
import { allObserved } from './state/observed.ts'
import { openSqliteStore } from './state/sqlite.ts'
import type { Store } from './state/store.ts'
import { VERSION } from './version.ts'

/** Wires the server together, runs it until a signal says stop, and takes it apart again. */
export async function serve(call: Call<ServeOptions>): Promise<void> {
  const { io, options } = call
  const logger = pino({ level: options.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime })
  const data = resolve(io.cwd, options.data)
  await makeDirectory(data, 0o700)
  const life: Life = { logger, data, env: io.env, stopped: stopped(io.interrupted), signal: io.interrupted }
  if (options.role === 'boot') await serveBoots(call, { ...life, ready: () => ready(life) })
  else await serveControl(call, life)
}

interface Life {
  readonly logger: Logger
  readonly data: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stopped: Promise<void>
  readonly signal: AbortSignal
}

async function serveControl({ io, options }: Call<ServeOptions>, life: Life): Promise<void> {
  const { logger, data } = life
  const workspace = await openWorkspace(await siteDir(io, options))
  const where = parseListen(options.listen)
  const tls = await readTls(options)
  if (tls === undefined && where.fd === undefined && !isLoopback(where.host)) {
    throw new MusterError('USAGE', `${where.host} is not a loopback address: tokens would travel in clear`, {
      hint: 'give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy',
    })
  }
  const keys = await readKeys(io, options.key)

  await using store = await openSqliteStore(join(data, 'state.db'))
  const identities = keys === undefined ? [] : parseKeyFile(keys)
  const control = await Control.start(store, workspace, { identities })
  const tokens = await Tokens.load(store)
  const images = await openImageStore(join(data, 'images'))
  await keepSettings(store, control)
  const channels = new Channels(store, images)
  await using views = await ViewCompiler.start(store, images, logger)
  const recorder = await Recorder.load(store, {
    isNode: name => control.desired.get(name) !== undefined,
    site: () => views.index(),
  })
  // Before any node is answered: one that is told of no files would start without them.
  await using files = await FileBook.start({
    store,
    logger,
    repo: workspace.repo,
    tree: () => treeWithFiles(store, control),
    identities,
  })
  const authority = options.role === 'control' ? undefined : await Authority.open(join(data, 'ca'))
  const boot =
    authority === undefined
      ? undefined
      : await BootService.start({
          dir: join(data, 'boot'),
          logger,
          blobs: images,
          send: batch => recorder.take(batch),
          filesDir: join(workspace.dir, 'files'),
          files,
          authority,
          ...(options.bootListen !== undefined && { listen: parseListen(options.bootListen) }),
          ...(options.ownDnsmasq === true && { externalDnsmasq: true }),
        })
  await using _ = { [Symbol.asyncDispose]: async () => boot?.[Symbol.asyncDispose]() }
  if (boot !== undefined) views.onChange(index => boot.update(index))
  await boot?.settled()
  const server = await startServer(
    {
      version: VERSION,
      store,
      control,
      tokens,
      images,
      recorder,
      views,
      bootServers: () => boot?.urls() ?? bootServersOf(views),
      trust: authority && boot && { authority, plan: () => boot.enrolPlan(), revoke: node => boot.revoke(node) },
      channels,
      files,
      imageRoots: async () => rootsOf((await allObserved(store)).values(), await channels.list()),
    },
    { ...where, socket: resolve(data, options.socket ?? 'muster.sock'), logger, ...(tls && { tls }) },
  )
  const sweeping = setInterval(
    () => void recorder.sweep().catch((error: unknown) => logger.error({ err: error }, 'sweep failed')),
    1000,
  )
  logger.info(
    { url: server.url, site: workspace.dir, data, nodes: control.desired.nodes.size, version: VERSION },
    'ready',
  )
  await ready(life)
  void giveBackMemory(store, io.interrupted)
  await life.stopped
  await stopping(life)
  clearInterval(sweeping)
  await server.close()
}

/** A site that was applied before there were settings has them now. */
async function keepSettings(store: Store, control: Control): Promise<void> {
  if (control.desired.nodes.size === 0 || (await store.get(SETTINGS)) !== undefined) return
  const value = JSON.stringify(settingsOf(await control.appliedSite()))
  await store.commit([{ key: SETTINGS, value }], [{ kind: 'site.settings', actor: 'muster' }])
}

/** Of the site in force; undefined if no node of it gets any file, and so nobody needs to read it a second time. */
async function treeWithFiles(store: Store, control: Control): Promise<string | undefined> {
  // It is told of a new site by the store, a moment before that is in memory.
  await control.idle()
  const { generation } = await currentGeneration(store)
  const hasFiles = control.desired.nodes.values().some(({ json }) => json.includes('"files":{"'))
  return hasFiles ? generation?.tree : undefined
}

function bootServersOf(views: ViewCompiler): string[] {
  const provision = views.index()?.view.settings.provision
  return (provision?.servers ?? []).map(server => `http://${server}:${provision?.port}`)
}

const ready = (life: Life): Promise<void> => notify(life.env['NOTIFY_SOCKET'], 'READY=1', life.logger)

async function stopping(life: Life): Promise<void> {
  life.logger.info('stopping')
  await notify(life.env['NOTIFY_SOCKET'], 'STOPPING=1', life.logger)
}

const CALM = 5000

/** Applying a site takes memory for a moment, which V8 would keep for good. Once things have calmed down it is given back. */
async function giveBackMemory(store: Store, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  for await (const events of store.watch(await store.revision(), signal)) {
    if (!events.some(event => event.kind === 'site.applied')) continue
    clearTimeout(timer)
    timer = setTimeout(() => globalThis.gc?.(), CALM).unref()
  }
}

/** Tells systemd (Type=notify, NotifyAccess=all). */
async function notify(socket: string | undefined, message: string, logger: Logger): Promise<void> {
  if (socket === undefined) return
  await exec('systemd-notify', [message], { env: { NOTIFY_SOCKET: socket } }).catch((error: unknown) =>
    logger.warn({ err: error }, 'systemd was not told'),
  )
}

const stopped = (signal: AbortSignal): Promise<void> =>
  new Promise(done => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done(), { once: true })
  })

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

async function readTls(options: ServeOptions): Promise<{ cert: Buffer; key: Buffer } | undefined> {
  if (options.tlsCert === undefined && options.tlsKey === undefined) return undefined
  if (options.tlsCert === undefined || options.tlsKey === undefined)
    throw new MusterError('USAGE', '--tls-cert and --tls-key go together')
  const tls = { cert: await readPem(options.tlsCert), key: await readPem(options.tlsKey) }
  try {
    createSecureContext(tls)
  } catch (error) {
    throw new MusterError('USAGE', `${options.tlsCert} and ${options.tlsKey} are no certificate and its key`, {
      cause: error,
      hint: 'both must be PEM files that belong together',
    })
  }
  return tls
}

const readPem = (file: string): Promise<Buffer> =>
  readFile(file).catch((error: unknown) => {
    throw new MusterError('USAGE', `${file} cannot be read`, {
      cause: error,
      hint: 'check the path and who may read it',
    })
  })
