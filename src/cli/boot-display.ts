import { setTimeout as pause } from 'node:timers/promises'
import type { ApiClient } from '../api/client.ts'
import type { BootReply, NodeItem, TimelineReply } from '../api/schemas.ts'
import { MusterError } from '../lib/errors.ts'
import { fold } from '../lib/nodeset/index.ts'
import type { Io } from './io.ts'
import { waterfall } from './waterfall.ts'

const EVERY = 500

/** How machines boot, as it happens: a line per machine that grows on a terminal, a line per step elsewhere. */
export class BootDisplay {
  readonly #io: Io
  readonly #client: ApiClient
  readonly #names: readonly string[]
  readonly #from = new Date().toISOString()
  readonly #told = new Map<string, string>()
  /** Rows of the terminal that the lines of last time take. */
  #drawn = 0
  /** The line that counts simulated nodes. */
  #counted = ''

  constructor(io: Io, client: ApiClient, names: readonly string[]) {
    this.#io = io
    this.#client = client
    this.#names = names
  }

  /** Until all are ready, or the time is over; resolves with those that are not. */
  async until(others: readonly string[], patience: number, signal: AbortSignal): Promise<string[]> {
    const end = Date.now() + patience
    for (;;) {
      const boots = await this.#look()
      this.#show(boots)
      const waiting = this.#names.filter(name => boots.get(name)?.phases.at(-1)?.phase !== 'ready')
      const pending = waiting.length === 0 && others.length > 0 ? await this.#notReady(others) : []
      if (waiting.length === 0 && pending.length === 0) return []
      if (Date.now() > end) return [...waiting, ...pending]
      await pause(EVERY, undefined, { signal }).catch(() => {
        throw new MusterError('ABORTED', 'interrupted')
      })
    }
  }

  async #look(): Promise<Map<string, BootReply>> {
    const boots = new Map<string, BootReply>()
    for (const name of this.#names) {
      const reply = await this.#client.get<TimelineReply>(`/api/v1/nodes/${name}/timeline`)
      const [boot] = reply.boots
      if (boot !== undefined && boot.last.at >= this.#from) boots.set(name, boot)
    }
    return boots
  }

  async #notReady(names: readonly string[]): Promise<string[]> {
    const waiting: string[] = []
    for await (const page of this.#client.pages<NodeItem>('/api/v1/nodes', { nodes: fold(names), limit: 50_000 }))
      for (const { name, observed } of page) if (observed.boot?.value !== 'ready') waiting.push(name)
    this.#count(`  simulated nodes ready: ${names.length - waiting.length} of ${names.length}`)
    return waiting
  }

  /** The line below those of the machines. */
  #count(text: string): void {
    if (this.#counted === text) return
    const isDrawn = this.#io.stderr.isTTY === true && this.#counted !== ''
    this.#io.stderr.write(`${isDrawn ? '\x1b[1A\x1b[J' : ''}${text}\n`)
    if (!isDrawn) this.#drawn++
    this.#counted = text
  }

  #show(boots: ReadonlyMap<string, BootReply>): void {
    const now = new Date()
    if (this.#io.stderr.isTTY === true) {
      const columns = (this.#io.stderr as { columns?: number }).columns ?? 80
      const up = this.#drawn > 0 ? `\x1b[${this.#drawn}A\x1b[J` : ''
      const lines = this.#names.map(name => {
        const boot = boots.get(name)
        return `  ${name}  ${boot === undefined ? 'power on …' : waterfall(boot, now)}`
      })
      if (this.#counted !== '') lines.push(this.#counted)
      this.#io.stderr.write(up + lines.map(line => `${line}\n`).join(''))
      // A line that is longer than the terminal is wide goes on in the next row.
      this.#drawn = lines.reduce((rows, line) => rows + Math.ceil(line.length / columns), 0)
      return
    }
    for (const [name, boot] of boots) {
      const step = `${boot.phases.at(-1)?.phase} ${boot.failed?.reason ?? ''}`
      if (this.#told.get(name) === step) continue
      this.#told.set(name, step)
      this.#io.stderr.write(`  ${name}  ${waterfall(boot, now)}\n`)
    }
  }
}
