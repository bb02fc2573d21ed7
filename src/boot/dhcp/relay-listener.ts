import type { Logger } from 'pino'
import { KeptRunning } from './keep-running.ts'
import { LISTENER, type RelayedRequest, RelayedReader } from './relayed.ts'

/** What a switch says of a machine is the same for each of the five or so requests of a boot. */
const AGAIN = 30_000
/** Whoever is on the network can make machines up. */
const MOST = 50_000

/** Listens for what switches say of machines that boot, while a site has switches that say something. */
export class RelayListener implements AsyncDisposable {
  readonly #onRequest: (request: RelayedRequest, at: Date) => void
  readonly #kept: KeptRunning
  readonly #logger: Logger
  readonly #told = new Map<string, { readonly said: string; readonly at: number }>()
  readonly #now: () => Date
  #isWanted = false

  constructor(options: {
    readonly logger: Logger
    readonly onRequest: (request: RelayedRequest, at: Date) => void
    readonly now?: () => Date
    readonly listener?: readonly [command: string, ...args: string[]]
    /** What comes from now on is heard. */
    readonly onListening?: () => void
  }) {
    this.#onRequest = options.onRequest
    this.#logger = options.logger
    this.#now = options.now ?? (() => new Date())
    const reader = new RelayedReader(request => this.#heard(request))
    const [command, ...args] = options.listener ?? LISTENER
    this.#kept = new KeptRunning({
      command,
      args,
      onLine: line => {
        if (line.startsWith('listening on ')) options.onListening?.()
        reader.line(line)
      },
      onDied: (words, delay) => this.#logger.warn({ words, delay }, 'option 82 is not read: tcpdump ended'),
    })
  }

  /** Whether there is anything to listen for. */
  async want(isWanted: boolean): Promise<void> {
    if (isWanted === this.#isWanted) return
    this.#isWanted = isWanted
    if (!isWanted) return this.#kept[Symbol.asyncDispose]()
    await this.#kept
      .restart()
      .catch((error: unknown) =>
        this.#logger.warn({ err: error }, 'option 82 is not read: Debian has tcpdump in the package tcpdump'),
      )
  }

  #heard(request: RelayedRequest): void {
    const at = this.#now()
    const said = [request.circuit, request.remote, request.relay].join(' ')
    const before = this.#told.get(request.mac)
    if (before?.said === said && at.getTime() - before.at < AGAIN) return
    if (this.#told.size >= MOST) this.#told.clear()
    this.#told.set(request.mac, { said, at: at.getTime() })
    this.#onRequest(request, at)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept[Symbol.asyncDispose]()
  }
}
