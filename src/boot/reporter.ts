import type { Logger } from 'pino'
import { fold } from '../lib/nodeset/index.ts'
import type { Sighting, SightingBatch } from '../nodes/reports.ts'

/** So often what was seen is handed on. */
const EVERY = 250
/** Even if nothing changed, a status is told again after so long: whoever listens may have started anew. */
const AGAIN = 60_000
const MOST = 50_000
const LONGEST_PAUSE = 10_000

/**
 * Hands what a boot server sees to the control role, which may be down: then it is kept, the newest of it, and told later.
 * Heartbeats that say nothing new are only counted.
 */
export class Reporter implements AsyncDisposable {
  readonly #send: (batch: SightingBatch) => Promise<void>
  readonly #logger: Logger
  #sightings: Sighting[] = []
  #heard = new Set<string>()
  readonly #told = new Map<string, { readonly what: string; readonly at: number }>()
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #pause = EVERY
  #dropped = 0

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

  #isNews(sighting: Extract<Sighting, { kind: 'status' }>): boolean {
    const { at, server: _, ...rest } = sighting
    const what = JSON.stringify(rest)
    const before = this.#told.get(sighting.node)
    const now = Date.parse(at)
    if (before?.what === what && now - before.at < AGAIN) return false
    this.#told.set(sighting.node, { what, at: now })
    return true
  }

  #wake(): void {
    this.#timer ??= setTimeout(() => void this.#flush(), this.#pause)
  }

  async #flush(): Promise<void> {
    this.#timer = undefined
    // One at a time, in order.
    await this.#sending
    const [sightings, heard] = [this.#sightings, this.#heard]
    if (sightings.length === 0 && heard.size === 0) return
    this.#sightings = sightings.slice(10_000)
    this.#heard = new Set()
    this.#sending = this.#deliver(sightings.slice(0, 10_000), heard)
    await this.#sending
    if (this.#sightings.length > 0 || this.#heard.size > 0) this.#wake()
  }

  async #deliver(sightings: Sighting[], heard: Set<string>): Promise<void> {
    try {
      await this.#send({ sightings, heard: fold(heard) })
      this.#pause = EVERY
      if (this.#dropped > 0) this.#logger.warn({ count: this.#dropped }, 'sightings were dropped while nobody listened')
      this.#dropped = 0
    } catch (error) {
      if (this.#pause === EVERY) this.#logger.warn({ err: error }, 'the control role cannot be told; it will be')
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
      this.#sightings = [...sightings, ...this.#sightings]
      for (const node of heard) this.#heard.add(node)
    }
  }

  /** Tells what is left, once. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#flush()
    clearTimeout(this.#timer)
  }
}
