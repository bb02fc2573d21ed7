import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { makeDirectory } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { Mutex } from '../../lib/mutex.ts'
import { type ServedLoader, servedLoaders } from '../loaders.ts'
import type { Daemon } from './daemon.ts'
import type { AddressService, DaemonState, DhcpDesired, DhcpSighting } from './desired.ts'
import { ExternalDaemon, runningDnsmasq } from './external-daemon.ts'
import { nameLines, reservationLines } from './hosts.ts'
import { RouterAddresses, hasIpv6, interfacesOf } from './interfaces.ts'
import { KeptRunning } from './keep-running.ts'
import { ReservationFiles, Staging, missing, textOf } from './lists.ts'
import { planNetworks } from './networks.ts'
import { OwnDaemon } from './own-daemon.ts'
import { LeaseReturns, ReleaseSender } from './release.ts'
import { type Configurations, filesIn, renderDnsmasq } from './render.ts'
import { SightingReader } from './sightings.ts'

export interface DnsmasqOptions {
  /** Its own directory: configurations, lists, loaders, pid files. */
  readonly dir: string
  readonly logger: Logger
  readonly onSighting: (sighting: DhcpSighting) => void
  /** dnsmasq runs as units of systemd's (contrib/systemd): we only write their files, and tell them. */
  readonly external?: boolean
  /** How to read what an external one says, line by line. */
  readonly follow?: readonly [command: string, ...args: string[]]
}

type Role = keyof Configurations
const ROLES = ['addresses', 'names'] as const satisfies readonly Role[]

const JOURNAL = ['journalctl', '--follow', '--output=cat', '--lines=0', '--unit=muster-dnsmasq@addresses'] as const

/** Gives out addresses, names and loaders by dnsmasq. What an earlier one left in the directory is served at once. */
export async function startDnsmasq(options: DnsmasqOptions): Promise<AddressService> {
  const service = new DnsmasqService(options)
  await service.start()
  return service
}

class DnsmasqService implements AddressService {
  readonly #options: DnsmasqOptions
  readonly #files: ReturnType<typeof filesIn>
  readonly #staging: Staging
  readonly #reservations: ReservationFiles
  readonly #sender = new ReleaseSender()
  readonly #returns = new LeaseReturns(lease => this.#sender.send(lease))
  readonly #routers: RouterAddresses
  readonly #reader: SightingReader
  readonly #turns = new Mutex()
  readonly #daemons = new Map<Role, Daemon>()
  #configs: Partial<Configurations> = {}
  #journal: KeptRunning | undefined
  /** Which of our addresses those with a reservation are answered from, by MAC and address. */
  #reserved: ReadonlyMap<string, string> = new Map()
  #latest: DhcpDesired | undefined

  constructor(options: DnsmasqOptions) {
    this.#options = options
    this.#files = filesIn(options.dir)
    this.#staging = new Staging(options.dir)
    this.#reservations = new ReservationFiles(this.#files.reservations, this.#files.added, this.#staging)
    this.#routers = new RouterAddresses(options.logger)
    this.#reader = new SightingReader({
      onSighting: sighting => this.#saw(sighting),
      onReleased: (mac, address) => this.#returns.confirm({ mac, address }),
    })
  }

  async start(): Promise<void> {
    const { dir, external } = this.#options
    await makeDirectory(dir, 0o755)
    await mkdir(this.#files.tftp, { recursive: true })
    await this.#staging.prepare()
    await this.#reservations.open()
    for (const role of ROLES) {
      const config = await readFile(this.#files[role], 'utf8').catch(missing)
      if (config !== undefined) this.#configs = { ...this.#configs, [role]: config }
      this.#daemons.set(role, await this.#daemon(role))
    }
    if (external === true) await this.#follow()
    else for (const role of ROLES) if (this.#configs[role] !== undefined) await this.#restart(role).catch(() => {})
  }

  async #daemon(role: Role): Promise<Daemon> {
    const { dir, logger, external } = this.#options
    const config = this.#files[role]
    const pidFile = join(dir, `${role}.pid`)
    if (external === true) return new ExternalDaemon({ name: role, config, pidFile })
    const other = await runningDnsmasq(pidFile, config)
    // Two of them would both answer: each has half of the packets, and neither is told about all changes.
    if (other !== undefined)
      throw new MusterError('ADDRESS_UNUSABLE', `a dnsmasq (process ${other}) already runs with ${config}`, {
        hint: 'stop the unit muster-dnsmasq@, or tell muster that it is there',
      })
    const onLine = role === 'addresses' ? (line: string) => this.#reader.line(line) : () => {}
    return OwnDaemon.prepare({ name: role, config, logger, onLine })
  }

  get state(): readonly DaemonState[] {
    return [...this.#daemons.values()].map(({ state }) => state)
  }

  apply(desired: DhcpDesired): Promise<void> {
    this.#latest = desired
    return this.#turns.run(async () => {
      if (this.#latest === desired) await this.#put(desired)
    })
  }

  async #put(wanted: DhcpDesired): Promise<void> {
    const desired = { ...wanted, advertise: wanted.advertise !== false && hasIpv6() }
    const contents = await this.#loaders(desired)
    const place = {
      dir: this.#options.dir,
      interfaces: interfacesOf(desired.own),
      loaders: [...contents.keys()],
    }
    // Whatever is wrong with it shows before anything is touched.
    const configs = renderDnsmasq(desired, place)
    const reservations = reservationLines(desired)
    const hosts = textOf(nameLines(desired))
    const renewed = ROLES.filter(role => configs[role] !== this.#configs[role])
    for (const role of renewed) await this.#check(role, configs[role])

    const networks = planNetworks(desired)
    await this.#routers.hold(networks)
    await this.#staging.placeIfNew(join(this.#files.tftp, 'autoexec.ipxe'), desired.autoexec)
    for (const [{ file }, content] of contents) await this.#staging.placeIfNew(join(this.#files.tftp, file), content)
    this.#reserved = reservedFrom(desired)
    const isRenamed = await this.#staging.placeIfNew(this.#files.hosts, hosts)
    if (renewed.includes('addresses')) await this.#reservations.writeAll(reservations)
    for (const role of renewed) {
      await this.#staging.place(this.#files[role], configs[role])
      this.#configs = { ...this.#configs, [role]: configs[role] }
    }

    await Promise.all([
      renewed.includes('addresses') ? this.#restart('addresses') : this.#reserve(reservations),
      renewed.includes('names') ? this.#restart('names') : isRenamed && this.#names.reload(this.#files.hosts),
    ])
  }

  get #addresses(): Daemon {
    return this.#daemons.get('addresses') as Daemon
  }

  get #names(): Daemon {
    return this.#daemons.get('names') as Daemon
  }

  #restart(role: Role): Promise<void> {
    return role === 'addresses'
      ? this.#addresses.restart(this.#files.reservations)
      : this.#names.restart(this.#files.hosts)
  }

  async #reserve(lines: readonly string[]): Promise<void> {
    const change = this.#reservations.compare(lines)
    if (change.kind === 'added') {
      const file = this.#reservations.addition
      await this.#addresses.notices(file, () => this.#reservations.add(change.lines))
    } else if (change.kind === 'changed') {
      await this.#reservations.writeAll(lines)
      await this.#addresses.reload(this.#reservations.file)
    }
  }

  /** On a copy: what it rejects never becomes the configuration. */
  async #check(role: Role, config: string): Promise<void> {
    const draft = await this.#staging.draft(this.#files[role], config)
    await exec('dnsmasq', ['--test', `--conf-file=${draft}`]).catch((error: unknown) => {
      if (!(error instanceof MusterError)) throw error
      throw new MusterError('EXEC_FAILED', 'dnsmasq rejects the configuration; it goes on with the one it has', {
        details: error.details,
        hint: `what it rejected: ${draft}`,
        cause: error,
      })
    })
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
    const { mac, address, kind } = sighting
    const server = this.#reserved.get(`${mac} ${address}`)
    if (kind === 'ack' && address !== undefined && server !== undefined) this.#returns.add({ mac, address, server })
    this.#options.onSighting(sighting)
  }

  async #follow(): Promise<void> {
    const { follow: [command, ...args] = JOURNAL, logger } = this.#options
    this.#journal = new KeptRunning({ command, args, onLine: line => this.#reader.line(line) })
    await this.#journal
      .restart()
      .catch((error: unknown) =>
        logger.warn(
          { err: error },
          'what dnsmasq says cannot be read: firmware that asks for an address goes unnoticed',
        ),
      )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turns.run(async () => {
      for (const daemon of this.#daemons.values()) await daemon[Symbol.asyncDispose]()
      await this.#journal?.[Symbol.asyncDispose]()
      if (this.#options.external !== true) await this.#routers.letAllGo()
      this.#returns[Symbol.dispose]()
      this.#sender[Symbol.dispose]()
    })
  }
}

function reservedFrom(desired: DhcpDesired): Map<string, string> {
  if (desired.mode !== 'server') return new Map()
  const servers = new Map(planNetworks(desired).map(({ name, own }) => [name, own]))
  return new Map(
    desired.hosts.flatMap(({ macs, address, network }) => {
      const server = servers.get(network)
      return server === undefined ? [] : macs.map(mac => [`${mac.toLowerCase()} ${address}`, server] as const)
    }),
  )
}
