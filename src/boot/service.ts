import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Authority } from '../ca/authority.ts'
import { makeDirectory } from '../lib/dirs.ts'
import { messageOf } from '../lib/errors.ts'
import type { SightingBatch } from '../nodes/reports.ts'
import { dhcpDesired, ownAddresses, serverUrls } from './addresses.ts'
import { Artefacts, type Blobs } from './artefacts.ts'
import type { AddressService, DhcpSighting } from './dhcp/desired.ts'
import { startDnsmasq } from './dhcp/dnsmasq.ts'
import { RelayListener } from './dhcp/relay-listener.ts'
import type { RelayedRequest } from './dhcp/relayed.ts'
import { Enrolment } from './enrolment.ts'
import { type DiscoveryExtras, discoveryExtras } from './extras.ts'
import { type NodeTrust, createBootHttp } from './http.ts'
import type { ViewIndex } from './index-view.ts'
import type { EnrolPlan } from './ipxe.ts'
import { close, mostConnections, portOf } from './listening.ts'
import type { NodeFiles } from './node-files.ts'
import { Reporter } from './reporter.ts'
import { SecureListeners } from './secure-listeners.ts'

export interface BootServiceOptions {
  /** Its own directory. */
  readonly dir: string
  readonly logger: Logger
  readonly blobs: Blobs
  /** To the control role, wherever it is. */
  readonly send: (batch: SightingBatch) => Promise<void>
  /** Listen here and nowhere else, whatever addresses the machine has; port 0 for any. */
  readonly listen?: { readonly host: string; readonly port: number }
  /** Where the files of the site are: loaders of its own come from there. Without it, Debian's are given out. */
  readonly filesDir?: string
  /** dnsmasq runs as a unit of its own: only its files are written. */
  readonly externalDnsmasq?: boolean
  /** By which nodes know us, and we them. Without it they boot as they are, and get no files. */
  readonly authority?: Authority
  readonly files?: NodeFiles
  /** Seconds that only ever grow; those of this process unless given. */
  readonly elapsed?: () => number
}

const NO_FILES: NodeFiles = { list: () => undefined, content: () => undefined }

/** Nodes are let in. */
interface Trusting extends NodeTrust {
  readonly enrolment: Enrolment
  readonly listeners: SecureListeners
}

/** How much of the memory of the machine artefacts may take. */
const SHARE = 0.25
const MOST = 4 * 2 ** 30
/** Interfaces may get their address after us. */
const LOOK_AGAIN = 5000

/**
 * Everything a node needs to boot: addresses, loaders, scripts, artefacts, and somebody to report to. Works from the last view
 * it was given, for as long as it must.
 */
export class BootService implements AsyncDisposable {
  readonly #options: BootServiceOptions
  readonly #reporter: Reporter
  readonly #artefacts: Artefacts
  readonly #servers = new Map<string, Server>()
  #index: ViewIndex | undefined
  #own: readonly string[] = []
  #extras: DiscoveryExtras | undefined
  #makingExtras: Promise<void> | undefined
  #addresses: AddressService | undefined
  readonly #relays: RelayListener
  #timer: NodeJS.Timeout | undefined
  #trust: Trusting | undefined
  #applying: Promise<void> = Promise.resolve()
  #closed = false

  private constructor(options: BootServiceOptions) {
    this.#options = options
    this.#reporter = new Reporter(options.send, options.logger)
    this.#relays = new RelayListener({
      logger: options.logger,
      onRequest: (request, at) => this.#sawRelayed(request, at),
    })
    const pathOf = (sha256: string): string =>
      this.#extras?.sha256 === sha256 ? this.#extras.path : options.blobs.pathOf(sha256)
    this.#artefacts = new Artefacts({ pathOf }, { logger: options.logger, budget: Math.min(totalmem() * SHARE, MOST) })
  }

  static async start(options: BootServiceOptions): Promise<BootService> {
    await makeDirectory(options.dir, 0o700)
    const service = new BootService(options)
    await service.#beTrusted()
    if (options.listen !== undefined) {
      const { host, port } = options.listen
      await service.#listen(host, port)
      await service.#trust?.listeners.want([host], port === 0 ? 0 : port + 1)
    }
    service.#timer = setInterval(() => service.#lookAgain(), LOOK_AGAIN).unref()
    return service
  }

  /** Where nodes find it: http://10.77.0.1:7180 */
  urls(): readonly string[] {
    const listening = [...this.#servers].flatMap(([host, server]) => {
      const port = portOf(server)
      return port === undefined ? [] : [`http://${host}:${port}`]
    })
    if (this.#index === undefined || this.#options.listen !== undefined) return listening
    return this.#own.length === 0 ? [] : serverUrls(this.#index.view, this.#own)
  }

  async #beTrusted(): Promise<void> {
    const { authority, dir, logger, files = NO_FILES, elapsed } = this.#options
    if (authority === undefined) return
    const enrolment = await Enrolment.open({
      key: authority.nodeKey,
      file: join(dir, 'enrolments.jsonl'),
      index: () => this.#index,
      tell: sighting => this.#reporter.tell(sighting),
      ...(elapsed !== undefined && { elapsed }),
    })
    const listeners = new SecureListeners(authority, { logger, enrolment, files })
    this.#trust = {
      enrolment,
      listeners,
      authority: authority.pem,
      plan: urls => listeners.plan(urls),
      filesVersion: node => files.list(node)?.version,
    }
  }

  /** Where nodes prove who they are; undefined where nobody asks them to. */
  enrolPlan(): EnrolPlan | undefined {
    return this.#trust?.plan(this.urls())
  }

  /** Until its next boot the node gets nothing. */
  async revoke(node: string): Promise<void> {
    await this.#trust?.enrolment.revoke(node)
  }

  get artefacts(): Artefacts {
    return this.#artefacts
  }

  /** From now on nodes are answered from this. */
  update(index: ViewIndex): void {
    this.#index = index
    this.#applying = this.#applying
      .then(() => this.#apply(index))
      .catch((error: unknown) =>
        this.#options.logger.error({ err: error, reason: messageOf(error) }, 'boot services go on as they were'),
      )
  }

  /** Resolves when the last view is in force, DHCP included. */
  settled(): Promise<void> {
    return this.#applying
  }

  #lookAgain(): void {
    const index = this.#index
    if (index === undefined) return
    const own = ownAddresses(index.view)
    if (own.join() !== this.#own.join()) this.update(index)
  }

  async #apply(index: ViewIndex): Promise<void> {
    if (this.#closed || this.#index !== index) return
    const { logger } = this.#options
    if (this.#options.listen === undefined) {
      const own = ownAddresses(index.view)
      if (own.length === 0 && this.#own.join() === '' && this.#servers.size === 0)
        logger.info(
          { site: index.view.settings.site },
          'no address of this machine is in a network of the site: it boots nobody',
        )
      this.#own = own
      const { port, tlsPort } = index.view.settings.provision
      await this.#listenOn(own, port)
      await this.#trust?.listeners.want(own, tlsPort)
      if (own.length > 0 && index.view.settings.provision.dhcp !== 'none') {
        this.#addresses ??= await startDnsmasq({
          dir: join(this.#options.dir, 'dnsmasq'),
          logger,
          onSighting: sighting => this.#sawDhcp(sighting),
          ...(this.#options.externalDnsmasq === true && { external: true }),
        })
        await this.#addresses.apply(dhcpDesired(index, own, this.#options.filesDir))
        await this.#relays.want(Object.values(index.switches).some(({ circuit }) => circuit !== undefined))
      }
    }
    if (this.#servers.size > 0) await this.#prepare(index)
  }

  /** What the next boot will ask for, and so small that it may as well wait in memory. */
  async #prepare(index: ViewIndex): Promise<void> {
    const images = Object.values(index.view.images)
    for (const blob of images.flatMap(({ kernel, initrd }) => [kernel, initrd]))
      if (blob !== undefined) await this.#artefacts.warm(blob.sha256)
    await this.#discoveryExtras()
  }

  /** Made once; whoever asks before it is there waits a moment. */
  async #discoveryExtras(): Promise<string | undefined> {
    this.#makingExtras ??= discoveryExtras(join(this.#options.dir, 'extras')).then(
      made => void (this.#extras = made),
      (error: unknown) =>
        this.#options.logger.warn({ err: error }, 'the discovery system goes without tcpdump and ipmitool'),
    )
    await this.#makingExtras
    return this.#extras?.sha256
  }

  async #listenOn(own: readonly string[], port: number): Promise<void> {
    for (const [host, server] of this.#servers) {
      if (own.includes(host) && portOf(server) === port) continue
      this.#servers.delete(host)
      await close(server)
    }
    for (const host of own)
      if (!this.#servers.has(host))
        await this.#listen(host, port).catch((error: unknown) =>
          this.#options.logger.error({ err: error, host, port }, 'nodes cannot be answered on this address'),
        )
  }

  async #listen(host: string, port: number): Promise<void> {
    const server = createBootHttp({
      logger: this.#options.logger,
      artefacts: this.#artefacts,
      index: () => this.#index,
      servers: asked => this.#urlsFor(asked),
      tell: sighting => this.#reporter.tell(sighting),
      heard: node => this.#reporter.heard(node),
      trust: this.#trust,
      loader: name => readFile(join(this.#options.dir, 'dnsmasq', 'tftp', name)).catch(() => undefined),
      discoveryExtras: () => this.#discoveryExtras(),
    })
    server.maxConnections = mostConnections()
    server.once('drop', () => {
      const hint = 'give it more, as LimitNOFILE= of its unit does, or the site another boot server'
      this.#options.logger.warn({ most: server.maxConnections, hint }, 'more nodes connect than files may be open')
    })
    server.listen({ host, port, backlog: 4096 })
    await once(server, 'listening')
    this.#servers.set(host, server)
    this.#options.logger.info({ host, port: portOf(server) }, 'nodes are answered here')
  }

  #urlsFor(asked: string): [string, ...string[]] {
    const index = this.#index
    if (this.#options.listen !== undefined || index === undefined) {
      const [first = `http://${asked}:${this.#options.listen?.port ?? 7180}`, ...more] = this.urls()
      return [first, ...more]
    }
    return serverUrls(index.view, this.#own, asked)
  }

  #sawDhcp(sighting: DhcpSighting): void {
    if (!sighting.isFirmware || sighting.kind !== 'discover') return
    const node = this.#index?.machine(sighting.mac)?.node
    if (node !== undefined) this.#trust?.enrolment.starts(node.name)
    // One that boots from its own disk is offered no loader: there is no boot of ours to follow.
    if (node === undefined || node.from === 'disk') return
    this.#reporter.tell({
      kind: 'phase',
      at: sighting.at.toISOString(),
      server: this.#own[0] ?? '',
      mac: sighting.mac,
      node: node.name,
      phase: 'dhcp',
    })
  }

  #sawRelayed(request: RelayedRequest, at: Date): void {
    this.#reporter.tell({ kind: 'relayed', at: at.toISOString(), server: this.#own[0] ?? '', ...request })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#applying
    await this.#relays[Symbol.asyncDispose]()
    await this.#addresses?.[Symbol.asyncDispose]()
    await Promise.all([...this.#servers.values()].map(close))
    await this.#trust?.listeners[Symbol.asyncDispose]()
    await this.#trust?.enrolment[Symbol.asyncDispose]()
    await this.#reporter[Symbol.asyncDispose]()
  }
}
