import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { makeDirectory } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { Mutex } from '../../lib/mutex.ts'
import { type ServedLoader, servedLoaders } from '../loaders.ts'
import { ConfiguredDaemon } from './configured.ts'
import type { Daemon } from './daemon.ts'
import type { AddressService, DaemonState, DhcpDesired, DhcpSighting } from './desired.ts'
import { ExternalDaemon, runningDnsmasq } from './external-daemon.ts'
import { nameLines, reservationLines } from './hosts.ts'
import { RouterAddresses, hasIpv6, interfacesOf } from './interfaces.ts'
import { KeptRunning } from './keep-running.ts'
import { ReservationFiles, Staging, missing, textOf } from './lists.ts'
import { planNetworks } from './networks.ts'
import { OwnDaemon } from './own-daemon.ts'
import { type Configurations, filesIn, renderDnsmasq } from './render.ts'
import { SightingReader } from './sightings.ts'
import { Strangers } from './strangers.ts'

export interface DnsmasqOptions {
  /** Its own directory: configurations, lists, loaders. */
  readonly dir: string
  readonly logger: Logger
  readonly onSighting: (sighting: DhcpSighting) => void
  /** dnsmasq runs as units of systemd's (contrib/systemd): we only write their files, and tell them. */
  readonly external?: boolean
  /** How to read what an external one says, line by line. */
  readonly follow?: readonly [command: string, ...args: string[]]
}

const JOURNAL = ['journalctl', '--follow', '--output=cat', '--lines=0', '--unit=muster-dnsmasq@addresses'] as const

/** Gives out addresses, names and loaders by dnsmasq. What an earlier one left in the directory is served at once. */
export async function startDnsmasq(options: DnsmasqOptions): Promise<AddressService> {
  const { dir } = options
  const files = filesIn(dir)
  await makeDirectory(dir, 0o755)
  await mkdir(files.tftp, { recursive: true })
  const staging = new Staging(dir)
  await staging.prepare()
  const service = new DnsmasqService(options, staging)
  await service.start()
  return service
}

class DnsmasqService implements AddressService {
  readonly #options: DnsmasqOptions
  readonly #files: ReturnType<typeof filesIn>
  readonly #staging: Staging
  readonly #reservations: ReservationFiles
  readonly #strangers = new Strangers()
  readonly #routers: RouterAddresses
  readonly #reader: SightingReader
  readonly #turns = new Mutex()
  readonly #stack = new AsyncDisposableStack()
  #daemons: Readonly<Record<keyof Configurations, ConfiguredDaemon>> | undefined
  /** Addresses that are those of nodes. */
  #reserved: ReadonlySet<string> = new Set()
  #latest: DhcpDesired | undefined

  constructor(options: DnsmasqOptions, staging: Staging) {
    this.#options = options
    this.#files = filesIn(options.dir)
    this.#staging = staging
    this.#reservations = new ReservationFiles(this.#files, staging)
    this.#routers = new RouterAddresses(options.logger)
    this.#reader = new SightingReader(sighting => this.#saw(sighting))
  }

  async start(): Promise<void> {
    await this.#reservations.open()
    const [addresses, names] = [await this.#prepare('addresses'), await this.#prepare('names')]
    this.#daemons = { addresses, names }
    if (this.#options.external === true) return this.#follow()
    this.#stack.defer(() => this.#routers.letAllGo())
    await Promise.all([addresses.start(), names.start()])
  }

  async #prepare(role: keyof Configurations): Promise<ConfiguredDaemon> {
    const daemon = new ConfiguredDaemon(await this.#daemon(role), {
      file: this.#files[role],
      lists: role === 'addresses' ? this.#files.reservations : this.#files.hosts,
      staging: this.#staging,
    })
    await daemon.open()
    return this.#stack.use(daemon)
  }

  async #daemon(role: keyof Configurations): Promise<Daemon> {
    const { logger, external } = this.#options
    const config = this.#files[role]
    if (external === true) return new ExternalDaemon({ name: role, config })
    const other = await runningDnsmasq(config)
    // Two of them would both answer: each has half of the packets, and neither is told about all changes.
    if (other !== undefined)
      throw new MusterError('ADDRESS_UNUSABLE', `a dnsmasq (process ${other}) already runs with ${config}`, {
        hint: 'stop the units muster-dnsmasq@, or tell muster that they are there',
      })
    const onLine = role === 'addresses' ? (line: string) => this.#reader.line(line) : () => {}
    return OwnDaemon.prepare({ name: role, config, logger, overlaps: role === 'addresses', onLine })
  }

  get state(): readonly DaemonState[] {
    return Object.values(this.#daemons ?? {}).map(({ state }) => state)
  }

  apply(desired: DhcpDesired): Promise<void> {
    this.#latest = desired
    return this.#turns.run(async () => {
      if (this.#latest === desired) await this.#put(desired)
    })
  }

  async #put(wanted: DhcpDesired): Promise<void> {
    const { addresses, names } = this.#daemons ?? {}
    if (addresses === undefined || names === undefined) return
    const desired = { ...wanted, advertise: wanted.advertise !== false && hasIpv6() }
    const loaders = await this.#loaders(desired)
    // Whatever is wrong with it shows before anything is touched.
    const configs = renderDnsmasq(desired, {
      dir: this.#options.dir,
      interfaces: interfacesOf(desired.own),
      loaders: [...loaders.keys()],
    })
    const reservations = reservationLines(desired)
    const hosts = textOf(nameLines(desired))
    await addresses.check(configs.addresses)
    await names.check(configs.names)

    await this.#routers.hold(planNetworks(desired))
    await this.#staging.placeIfNew(join(this.#files.tftp, 'autoexec.ipxe'), desired.autoexec)
    for (const [{ file }, content] of loaders) await this.#staging.placeIfNew(join(this.#files.tftp, file), content)
    this.#reserved = new Set(desired.hosts.map(({ address }) => address))
    await Promise.all([
      this.#putAddresses(addresses, configs.addresses, reservations, desired),
      this.#putNames(names, configs.names, hosts),
    ])
  }

  async #putAddresses(
    daemon: ConfiguredDaemon,
    config: string,
    lines: readonly string[],
    desired: DhcpDesired,
  ): Promise<void> {
    const change = this.#reservations.compare(lines)
    if (change.kind === 'changed' || daemon.isBehind(config)) {
      await this.#reservations.writeAll(lines, this.#strangers.lines(desired, Date.now()))
      await daemon.renew(config)
    } else if (change.kind === 'added') {
      const file = this.#reservations.addition
      await daemon.update(running => running.notices(file, () => this.#reservations.add(change.lines)))
    }
  }

  async #putNames(daemon: ConfiguredDaemon, config: string, hosts: string): Promise<void> {
    const isNew = await this.#staging.placeIfNew(this.#files.hosts, hosts)
    if (daemon.isBehind(config)) await daemon.renew(config)
    else if (isNew) await daemon.update(running => running.reload(this.#files.hosts))
  }

  async #loaders(desired: DhcpDesired): Promise<Map<ServedLoader, Buffer>> {
    const contents = new Map<ServedLoader, Buffer>()
    for (const loader of servedLoaders(desired.loaders)) {
      const content = await readFile(loader.source).catch(missing)
      if (content !== undefined) contents.set(loader, content)
      else
        this.#options.logger.warn(
          { platform: loader.platform, file: loader.source },
          'a loader is missing, so machines of this kind cannot boot: Debian has it in the package ipxe',
        )
    }
    return contents
  }

  #saw(sighting: DhcpSighting): void {
    const { address, kind } = sighting
    if (kind === 'ack' && address !== undefined && !this.#reserved.has(address)) this.#strangers.saw(sighting)
    this.#options.onSighting(sighting)
  }

  async #follow(): Promise<void> {
    const { follow: [command, ...args] = JOURNAL, logger } = this.#options
    const journal = this.#stack.use(new KeptRunning({ command, args, onLine: line => this.#reader.line(line) }))
    await journal
      .restart()
      .catch((error: unknown) =>
        logger.warn(
          { err: error },
          'what dnsmasq says cannot be read: firmware that asks for an address goes unnoticed',
        ),
      )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turns.run(() => this.#stack.disposeAsync())
  }
}
