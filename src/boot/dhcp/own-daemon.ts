import type { Logger } from 'pino'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { type Daemon, fileRead, isComplaint } from './daemon.ts'
import type { DaemonState } from './desired.ts'
import { KeptRunning } from './keep-running.ts'

export interface OwnDaemonOptions {
  readonly name: string
  readonly config: string
  readonly logger: Logger
  /** Two of them may run side by side for a moment, as those for DHCP may, but not those for DNS. */
  readonly overlaps: boolean
  /** What the one that serves says. */
  readonly onLine: (line: string) => void
}

/** Generous: it is for a daemon that hangs, not for one that has much to read. */
const PATIENCE = 60_000

/**
 * All it may do, although it is root: be on the network, and read files below other people's directories. It insists on
 * setting its group, to the one it has.
 */
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
      args: [...limits, '--pdeathsig=TERM', 'dnsmasq', '--keep-in-foreground', `--conf-file=${config}`, '--pid-file='],
      onLine: (line, pid) => this.#heard(line, pid),
      onDied: (words, delay, pid) => {
        logger.error({ daemon: name, words, delay }, 'dnsmasq died, and is started again')
        const error = failure(`dnsmasq (${name}) died, and is started again`, words)
        for (const waiting of this.#waiting) waiting.died(pid, error)
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
      ...(lastWords !== undefined && { lastError: lastWords }),
    }
  }

  async renew(file: string): Promise<void> {
    const { name, overlaps, logger } = this.#options
    if (overlaps && this.#kept.pid !== undefined)
      await this.#kept
        .replace(pid => this.#read(file, pid, async () => {}))
        .catch((error: unknown) => {
          if (error instanceof MusterError) throw error
          throw failure(`a new dnsmasq (${name}) ended at once; the one before goes on`, messageOf(error))
        })
    else await this.#read(file, undefined, () => this.#kept.restart())
    logger.info({ daemon: name, pid: this.#kept.pid }, 'dnsmasq runs')
  }

  async reload(file: string): Promise<void> {
    await this.notices(file, async () => this.#kept.signal('SIGHUP'))
  }

  /** One that does not run at the moment reads everything when it starts. */
  async notices(file: string, place: () => Promise<void>): Promise<void> {
    if (this.#kept.pid === undefined) await place()
    else await this.#read(file, this.#kept.pid, place)
  }

  /** Until the process, or whichever there is, says that it has read the file. */
  async #read(file: string, pid: number | undefined, begin: () => Promise<void>): Promise<void> {
    const waiting = new Waiting(file, pid)
    this.#waiting.add(waiting)
    try {
      await begin()
      await waiting.done
    } finally {
      this.#waiting.delete(waiting)
      waiting.stop()
    }
  }

  #heard(line: string, pid: number): void {
    if (pid === this.#kept.pid) this.#options.onLine(line)
    if (isComplaint(line)) this.#options.logger.warn({ daemon: this.#options.name, line }, 'dnsmasq complains')
    const file = fileRead(line)
    if (file !== undefined) for (const waiting of this.#waiting) waiting.heard(file, pid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept[Symbol.asyncDispose]()
  }
}

const failure = (message: string, words: string): MusterError =>
  new MusterError('EXEC_FAILED', message, { details: words.split('\n') })

class Waiting {
  readonly done: Promise<void>
  readonly #file: string
  readonly #pid: number | undefined
  readonly #settled = Promise.withResolvers<void>()
  readonly #timer: NodeJS.Timeout

  constructor(file: string, pid: number | undefined) {
    this.#file = file
    this.#pid = pid
    this.done = this.#settled.promise
    // Whoever waits may not have come to that yet.
    this.done.catch(() => {})
    this.#timer = setTimeout(
      () => this.#settled.reject(new MusterError('EXEC_FAILED', `dnsmasq did not read ${file} within a minute`)),
      PATIENCE,
    )
  }

  heard(file: string, pid: number): void {
    if (file === this.#file && (this.#pid === undefined || pid === this.#pid)) this.#settled.resolve()
  }

  died(pid: number | undefined, error: MusterError): void {
    if (this.#pid === undefined || pid === this.#pid) this.#settled.reject(error)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
