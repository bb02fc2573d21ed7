import { setTimeout as pause } from 'node:timers/promises'
import type { ApiClient } from '../api/client.ts'
import type { BootReply, NodeItem, TimelineReply } from '../api/schemas.ts'
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
  #drawn = 0

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
      await pause(EVERY, undefined, { signal })
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
    const text = `  simulated nodes ready: ${names.length - waiting.length} of ${names.length}`
    if (this.#told.get('simulated') !== text) this.#io.stderr.write(`${text}\n`)
    this.#told.set('simulated', text)
    return waiting
  }

  #show(boots: ReadonlyMap<string, BootReply>): void {
    const now = new Date()
    if (this.#io.stderr.isTTY === true) {
      const up = this.#drawn > 0 ? `\x1b[${this.#drawn}A` : ''
      const lines = this.#names.map(name => {
        const boot = boots.get(name)
        return `\x1b[2K  ${name}  ${boot === undefined ? 'power on …' : waterfall(boot, now)}`
      })
      this.#io.stderr.write(`${up}${lines.join('\n')}\n`)
      this.#drawn = lines.length
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
