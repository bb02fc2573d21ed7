import type { Logger } from 'pino'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { type Daemon, fileRead, isComplaint } from './daemon.ts'
import type { DaemonState } from './desired.ts'
import { KeptRunning, endedError } from './keep-running.ts'

export interface OwnDaemonOptions {
  readonly name: string
  readonly config: string
  readonly logger: Logger
  readonly onLine: (line: string) => void
}

/** Generous: it is for a daemon that hangs, not for one that has much to read. */
const PATIENCE = 60_000

/** All it may do, although it is root: be on the network, and read files below other people's directories; it also insists on
 * setting its group, to root. */
const LIMITS = [
  '--no-new-privs',
  '--inh-caps=-all',
  '--bounding-set=-all,+net_admin,+net_raw,+net_bind_service,+dac_read_search,+setgid',
]

/** A dnsmasq that we start, look after, and take along when we end, however we end. */
export class OwnDaemon implements Daemon {
  readonly #options: OwnDaemonOptions
  readonly #kept: KeptRunning
  readonly #waiting = new Set<Waiting>()

  static async prepare(options: OwnDaemonOptions): Promise<OwnDaemon> {
    // Within narrow limits of our own we may not narrow them further.
    const canLimit = await exec('setpriv', [...LIMITS, 'true']).then(
      () => true,
      () => false,
    )
    return new OwnDaemon(options, canLimit ? LIMITS : [])
  }

  private constructor(options: OwnDaemonOptions, limits: readonly string[]) {
    this.#options = options
    const { name, config, logger } = options
    this.#kept = new KeptRunning({
      command: 'setpriv',
      args: [...limits, '--pdeathsig=TERM', 'dnsmasq', '--keep-in-foreground', `--conf-file=${config}`],
      onLine: line => this.#heard(line),
      onStarted: () => logger.info({ daemon: name, pid: this.#kept.pid }, 'dnsmasq runs'),
      onDied: (words, delay) => {
        logger.error({ daemon: name, words, delay }, 'dnsmasq died, and is started again')
        for (const waiting of this.#waiting) waiting.fail(endedError(`dnsmasq (${name})`, words))
      },
    })
  }

  get state(): DaemonState {
    const { pid, deaths, lastWords } = this.#kept
    return {
      name: this.#options.name,
      running: pid !== undefined,
      ...(pid !== undefined && { pid }),
      restarts: deaths,
      ...(lastWords !== undefined && deaths > 0 && { lastError: lastWords }),
    }
  }

  restart(file: string): Promise<void> {
    return this.notices(file, () => this.#kept.restart())
  }

  async reload(file: string): Promise<void> {
    await this.notices(file, async () => void this.#kept.signal('SIGHUP'))
  }

  /** One that does not run at the moment reads everything when it starts. */
  async notices(file: string, place: () => Promise<void>): Promise<void> {
    const waiting = new Waiting(file)
    this.#waiting.add(waiting)
    try {
      await place()
      if (this.#kept.pid !== undefined) await waiting.done
    } finally {
      this.#waiting.delete(waiting)
      waiting.stop()
    }
  }

  #heard(line: string): void {
    this.#options.onLine(line)
    if (isComplaint(line)) this.#options.logger.warn({ daemon: this.#options.name, line }, 'dnsmasq complains')
    const file = fileRead(line)
    if (file !== undefined) for (const waiting of this.#waiting) if (waiting.file === file) waiting.succeed()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept[Symbol.asyncDispose]()
  }
}

class Waiting {
  readonly file: string
  readonly done: Promise<void>
  readonly #settled = Promise.withResolvers<void>()
  readonly #timer: NodeJS.Timeout

  constructor(file: string) {
    this.file = file
    this.done = this.#settled.promise
    // Whoever waits may not have come to that yet.
    this.done.catch(() => {})
    this.#timer = setTimeout(
      () => this.fail(new MusterError('EXEC_FAILED', `dnsmasq did not read ${file} within a minute`)),
      PATIENCE,
    )
  }

  succeed(): void {
    this.#settled.resolve()
  }

  fail(error: MusterError): void {
    this.#settled.reject(error)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
