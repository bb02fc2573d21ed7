import type { Logger } from 'pino'
import { MusterError } from '../lib/errors.ts'
import { fold } from '../lib/nodeset/index.ts'
import type { Sighting, SightingBatch } from '../nodes/reports.ts'

/** So often what was seen is handed on. */
const EVERY = 250
/** Even if nothing changed, a status is told again after so long: whoever listens may have started anew. */
const AGAIN = 60_000
const MOST = 50_000
/** In one batch, unless they turn out to be too large. */
const BATCH = 10_000
const LONGEST_PAUSE = 10_000
const GRACE = 5000

type Status = Extract<Sighting, { kind: 'status' }>

/**
 * Hands what a boot server sees to the control role, which may be down: then it is kept, the newest of it, and told later.
 * Heartbeats that say nothing new are only counted.
 */
export class Reporter implements AsyncDisposable {
  readonly #send: (batch: SightingBatch) => Promise<void>
  readonly #logger: Logger
  #sightings: Sighting[] = []
  #heard = new Set<string>()
  readonly #told = new Map<string, Status>()
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<boolean> | undefined
  #pause = EVERY
  #dropped = 0
  #batch = BATCH
  #isClosed = false

  constructor(send: (batch: SightingBatch) => Promise<void>, logger: Logger) {
    this.#send = send
    this.#logger = logger
  }

  tell(sighting: Sighting): void {
    if (sighting.kind === 'status' && !this.#isNews(sighting)) return
    this.#sightings.push(sighting)
    if (this.#sightings.length > MOST) {
      this.#sightings.splice(0, MOST / 10)
      this.#dropped += MOST / 10
    }
    this.#wake()
  }

  heard(node: string): void {
    this.#heard.add(node)
    this.#wake()
  }

  #isNews(sighting: Status): boolean {
    const before = this.#told.get(sighting.node)
    if (before !== undefined && isSame(before, sighting) && Date.parse(sighting.at) - Date.parse(before.at) < AGAIN)
      return false
    this.#told.set(sighting.node, sighting)
    return true
  }

  #wake(): void {
    // What is being sent is followed by the rest.
    if (this.#isClosed || this.#sending !== undefined) return
    this.#timer ??= setTimeout(() => void this.#flush(), this.#pause)
  }

  /** One batch at a time, in order. */
  async #flush(): Promise<void> {
    this.#timer = undefined
    this.#sending = this.#deliver()
    await this.#sending
    this.#sending = undefined
    if (this.#sightings.length > 0 || this.#heard.size > 0) this.#wake()
  }

  /** Whether somebody took it, or ever will. */
  async #deliver(): Promise<boolean> {
    const [sightings, heard] = [this.#sightings.slice(0, this.#batch), this.#heard]
    this.#sightings = this.#sightings.slice(this.#batch)
    this.#heard = new Set()
    try {
      await this.#send({ sightings, heard: fold(heard) })
      this.#pause = EVERY
      this.#batch = BATCH
      if (this.#dropped > 0) this.#logger.warn({ count: this.#dropped }, 'sightings were dropped while nobody listened')
      this.#dropped = 0
      return true
    } catch (error) {
      const code = error instanceof MusterError ? error.code : undefined
      const isTooLarge = code === 'BODY_TOO_LARGE'
      // Said once more it would be refused once more, and all that comes after it would wait for ever.
      if (code === 'REQUEST_INVALID' || code === 'USAGE' || (isTooLarge && sightings.length <= 1)) {
        this.#logger.error({ err: error, count: sightings.length }, 'the control role refuses what was seen')
        return true
      }
      if (isTooLarge) this.#batch = Math.max(1, Math.floor(this.#batch / 2))
      if (this.#pause === EVERY) this.#logger.warn({ err: error }, 'the control role cannot be told; it will be')
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
      this.#sightings = [...sightings, ...this.#sightings]
      for (const node of heard) this.#heard.add(node)
      return false
    }
  }

  /** Tells what is left, once; and waits no longer than it should. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const patience = Promise.withResolvers<void>()
    const timer = setTimeout(patience.resolve, GRACE)
    await Promise.race([this.#tellTheRest(), patience.promise])
    clearTimeout(timer)
  }

  async #tellTheRest(): Promise<void> {
    await this.#sending
    while (this.#sightings.length > 0 || this.#heard.size > 0) if (!(await this.#deliver())) return
  }
}

/** Whatever the time and the server. Thousands of times a second: hence field by field. */
const isSame = (a: Status, b: Status): boolean =>
  a.boot === b.boot &&
  a.mac === b.mac &&
  a.image === b.image &&
  a.kernel === b.kernel &&
  a.hostname === b.hostname &&
  a.health.status === b.health.status &&
  a.health.reason === b.health.reason &&
  a.addresses.length === b.addresses.length &&
  a.addresses.every((address, index) => address === b.addresses[index])
