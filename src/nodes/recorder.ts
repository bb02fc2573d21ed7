import { setTimeout as pause } from 'node:timers/promises'
import { parseNodeSet } from '../lib/nodeset/index.ts'
import { MusterError } from '../lib/errors.ts'
import { OBSERVED, Observed, type Report, mergeReport } from '../state/observed.ts'
import type { Change, NewEvent, Store } from '../state/store.ts'
import { type Boot, Boots, type PhaseSighting, advance, isOver, phaseOf, stuck } from './boots.ts'
import { MACHINE, Machine, isNews, machineId, machineSeen } from './machines.ts'
import type { Phase } from './phases.ts'
import type { Sighting, SightingBatch } from './reports.ts'

export interface RecorderOptions {
  readonly now?: () => Date
  /** What boot servers may say of: a node that is no longer there is not recorded. */
  readonly isNode: (name: string) => boolean
}

export const BOOTS = 'boots/'

/** Three heartbeats and a little: one that is lost is no silence. */
const SILENT_AFTER = 33_000
/** Changes of this long are written together: ten nodes or ten thousand cost one write. */
const GATHER = 200
const RETRIES = 10
/** More strangers than any delivery of racks brings. */
const MOST_MACHINES = 10_000
/** After a gap so long we may have missed steps of boots. */
const LONG = 60_000

type Status = Extract<Sighting, { kind: 'status' }>

/** Of one node, what is to be written next. */
interface Pending {
  news: Report
  boots?: readonly Boot[]
  readonly events: NewEvent[]
}

/**
 * Turns what boot servers saw into observed state, timelines and events. Heartbeats stay in memory; only what changes is
 * written, many nodes at once.
 */
export class Recorder {
  readonly #store: Store
  readonly #options: RecorderOptions
  readonly #boots: Map<string, readonly Boot[]>
  readonly #machines: Map<string, Machine>
  /** When each node was last heard, in milliseconds. */
  readonly #heard = new Map<string, number>()
  readonly #silent = new Set<string>()
  readonly #status = new Map<string, Status>()
  #pending = new Map<string, Pending>()
  #pendingMachines = new Map<string, Machine>()
  readonly #listeners = new Set<(phase: Phase, seconds: number) => void>()
  /** The write that will take what is pending, and the one under way. */
  #gathering: Promise<void> | undefined
  #writing: Promise<void> | undefined
  #swept: number
  /** Since when we have been looking without a gap. */
  #watched: number

  private constructor(
    store: Store,
    options: RecorderOptions,
    known: { boots: Map<string, readonly Boot[]>; machines: Map<string, Machine> },
  ) {
    this.#store = store
    this.#options = options
    this.#boots = known.boots
    this.#machines = known.machines
    this.#swept = this.#now().getTime()
    this.#watched = this.#swept
  }

  static async load(store: Store, options: RecorderOptions): Promise<Recorder> {
    const boots = new Map(
      (await store.list(BOOTS)).map(({ key, value }) => [key.slice(BOOTS.length), Boots.parse(JSON.parse(value))]),
    )
    const machines = (await store.list(MACHINE)).map(({ value }) => Machine.parse(JSON.parse(value)))
    const recorder = new Recorder(store, options, {
      boots,
      machines: new Map(machines.map(machine => [machine.id, machine])),
    })
    // Whoever was up when we last looked has from now on time to be heard.
    for (const { key, value } of await store.list(OBSERVED))
      if (Observed.parse(JSON.parse(value)).health !== undefined)
        recorder.#heard.set(key.slice(OBSERVED.length), recorder.#now().getTime())
    return recorder
  }

  /** Told how long each phase of a boot took. */
  onPhase(listener: (phase: Phase, seconds: number) => void): void {
    this.#listeners.add(listener)
  }

  boots(node: string): readonly Boot[] {
    return this.#boots.get(node) ?? []
  }

  machines(): readonly Machine[] {
    return [...this.#machines.values()]
  }

  machine(id: string): Machine {
    const machine = this.#machines.get(id)
    if (machine === undefined) throw new MusterError('MACHINE_UNKNOWN', `no machine ${id} was discovered`)
    return machine
  }

  async forget(id: string, event: Omit<NewEvent, 'kind'>): Promise<void> {
    const machine = this.machine(id)
    await this.#store.commit(
      [{ key: MACHINE + id, value: null }],
      [{ ...event, kind: 'machine.forgotten', data: { mac: machine.mac } }],
    )
    this.#machines.delete(id)
    this.#pendingMachines.delete(id)
  }

  /** Resolves once what it says is stored. */
  async take(batch: SightingBatch): Promise<void> {
    const heard = batch.heard === '' ? [] : parseNodeSet(batch.heard)
    for (const sighting of batch.sightings) this.#take(sighting)
    for (const node of heard) this.#hear(node)
    await this.#written()
  }

  /** To be called every second or so: who has fallen silent, whose boot is stuck. */
  async sweep(): Promise<void> {
    const now = this.#now()
    // If we ourselves were held up, that is nobody's silence, and nobody's boot is stuck for it.
    const held = now.getTime() - this.#swept - 5000
    if (held > 0) for (const [node, at] of this.#heard) this.#heard.set(node, at + held)
    if (held > LONG) this.#watched = now.getTime()
    this.#swept = now.getTime()
    for (const [node, at] of this.#heard) {
      if (now.getTime() - at < SILENT_AFTER) continue
      this.#heard.delete(node)
      if (!this.#options.isNode(node)) continue
      this.#silent.add(node)
      const since = new Date(at).toISOString()
      this.#note(node, { health: null }, { kind: 'node.silent', nodes: node, actor: 'agent', data: { since } })
    }
    for (const [node, [current]] of this.#boots) {
      if (current === undefined || isOver(current) || !this.#options.isNode(node)) continue
      const reason = stuck(current, now, this.#watched)
      if (reason === undefined) continue
      this.#phase(node, {
        kind: 'phase',
        at: now.toISOString(),
        server: '',
        mac: current.mac,
        ...(current.id !== undefined && { boot: current.id }),
        phase: 'failed',
        detail: reason,
      })
    }
    await this.#written()
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date()
  }

  #take(sighting: Sighting): void {
    if (sighting.kind === 'machine') {
      this.#machine(sighting)
      return
    }
    const { node } = sighting
    if (node === undefined || !this.#options.isNode(node)) return
    if (sighting.kind === 'phase') this.#phase(node, sighting)
    else this.#statusOf(node, sighting)
  }

  #machine({ facts, at, server }: Extract<Sighting, { kind: 'machine' }>): void {
    const before = this.#machines.get(machineId(facts.mac))
    // Whoever is on the network can make machines up.
    if (before === undefined && this.#machines.size >= MOST_MACHINES) return
    const after = machineSeen(before, facts, at, server)
    this.#machines.set(after.id, after)
    if (isNews(before, after)) this.#pendingMachines.set(after.id, after)
  }

  #phase(node: string, sighting: PhaseSighting): void {
    const step = advance(this.boots(node), sighting)
    if (step === undefined) return
    this.#boots.set(node, step.boots)
    const [boot] = step.boots
    if (boot === undefined) return
    const pending = this.#pendingOf(node)
    pending.boots = step.boots
    pending.news = { ...pending.news, boot: observedBoot(boot) }
    const trace = boot.id === undefined ? {} : { trace: boot.id }
    const { entered, failed } = step
    if (entered !== undefined) {
      if (entered.before !== undefined)
        for (const tell of this.#listeners) tell(entered.before.phase, entered.before.seconds)
      pending.events.push({
        kind: 'node.boot',
        nodes: node,
        actor: 'boot',
        ...trace,
        data: {
          phase: entered.phase,
          at: sighting.at,
          server: sighting.server,
          ...(sighting.detail !== undefined && { detail: sighting.detail }),
        },
      })
      if (entered.phase === 'ready') this.#ready(node)
      else this.#down(node)
    }
    if (failed !== undefined)
      pending.events.push({
        kind: 'node.boot.failed',
        nodes: node,
        actor: 'boot',
        ...trace,
        data: { phase: phaseOf(boot), reason: failed, server: sighting.server },
      })
  }

  #ready(node: string): void {
    this.#hear(node)
    this.#health(node)
  }

  /** Who boots sends no heartbeats, and nothing of what ran before is true any more. */
  #down(node: string): void {
    this.#heard.delete(node)
    const pending = this.#pendingOf(node)
    pending.news = { ...pending.news, image: null, health: null, config: null }
  }

  #statusOf(node: string, status: Status): void {
    this.#status.set(node, status)
    const [boot] = this.boots(node)
    if (boot !== undefined && boot.id === status.boot && isOver(boot)) {
      this.#health(node)
      return
    }
    // A node we never saw boot, or whose boot we lost: it is up, and that is what counts.
    const { at, server, mac, image } = status
    const up = { kind: 'phase', at, server, mac, boot: status.boot, phase: 'ready' } as const
    this.#phase(node, { ...up, ...(image !== undefined && { image }) })
  }

  /** As the agent last said, in this boot. */
  #health(node: string): void {
    const status = this.#status.get(node)
    if (status === undefined || status.boot !== this.boots(node)[0]?.id) return
    const pending = this.#pendingOf(node)
    const { health, image } = status
    pending.news = {
      ...pending.news,
      health: { value: health.status, ...(health.reason !== '' && { reason: health.reason }) },
      ...(image !== undefined && { image: { value: image } }),
    }
  }

  #hear(node: string): void {
    const [boot] = this.boots(node)
    // Sent before it went down.
    if (!this.#options.isNode(node) || boot === undefined || !isOver(boot)) return
    this.#heard.set(node, this.#now().getTime())
    if (!this.#silent.delete(node)) return
    this.#note(node, {}, { kind: 'node.heard', nodes: node, actor: 'agent' })
    this.#health(node)
  }

  #note(node: string, news: Report, event: NewEvent): void {
    const pending = this.#pendingOf(node)
    pending.news = { ...pending.news, ...news }
    pending.events.push(event)
  }

  #pendingOf(node: string): Pending {
    let pending = this.#pending.get(node)
    if (pending === undefined) this.#pending.set(node, (pending = { news: {}, events: [] }))
    return pending
  }

  /** Waits until what is pending now has been written. */
  async #written(): Promise<void> {
    if (this.#pending.size === 0 && this.#pendingMachines.size === 0) await this.#writing
    else await (this.#gathering ??= this.#gatherAndWrite())
  }

  async #gatherAndWrite(): Promise<void> {
    await pause(GATHER)
    // How the one before ended concerns those who wait for it.
    await this.#writing?.catch(() => {})
    this.#gathering = undefined
    this.#writing = this.#flush().finally(() => (this.#writing = undefined))
    await this.#writing
  }

  async #flush(): Promise<void> {
    const [nodes, machines] = [this.#pending, this.#pendingMachines]
    this.#pending = new Map()
    this.#pendingMachines = new Map()
    try {
      await this.#write(nodes, machines)
    } catch (error) {
      // It is written with the next: whoever told us says the same again, and that would be nothing new.
      for (const [node, { news, boots, events }] of nodes) {
        const later = this.#pendingOf(node)
        later.news = { ...news, ...later.news }
        if (boots !== undefined) later.boots ??= boots
        later.events.unshift(...events)
      }
      this.#pendingMachines = new Map([...machines, ...this.#pendingMachines])
      throw error
    }
  }

  async #write(nodes: ReadonlyMap<string, Pending>, machines: ReadonlyMap<string, Machine>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const changes: Change[] = []
      const events: NewEvent[] = []
      for (const [node, pending] of nodes) await this.#gather(node, pending, changes, events)
      for (const [id, machine] of machines) {
        changes.push({ key: MACHINE + id, value: JSON.stringify(machine) })
        events.push({
          kind: 'machine.discovered',
          actor: 'boot',
          data: { id, mac: machine.mac, neighbours: machine.neighbours, server: machine.server },
        })
      }
      const [first, ...more] = events
      if (first === undefined) return
      try {
        await this.#store.commit(changes, [first, ...more])
        return
      } catch (error) {
        // Somebody else wrote about one of the nodes: read again.
        if (!(error instanceof MusterError) || error.code !== 'STATE_CONFLICT' || attempt === RETRIES) throw error
      }
    }
  }

  async #gather(node: string, pending: Pending, changes: Change[], events: NewEvent[]): Promise<void> {
    const entry = await this.#store.get(OBSERVED + node)
    const before = entry === undefined ? {} : Observed.parse(JSON.parse(entry.value))
    const { after, changed } = mergeReport(before, pending.news, this.#now().toISOString())
    if (changed.length > 0) {
      changes.push({ key: OBSERVED + node, value: JSON.stringify(after), ifRevision: entry?.revision ?? 0 })
      // What a boot is at has events of its own.
      const others = changed.filter(name => name !== 'boot' && after[name] !== undefined)
      if (others.length > 0 || pending.events.length === 0)
        events.push({
          kind: 'node.observed',
          nodes: node,
          actor: 'agent',
          data: Object.fromEntries(changed.map(name => [name, after[name]?.value ?? null])),
        })
    }
    if (pending.boots !== undefined) {
      changes.push({ key: BOOTS + node, value: JSON.stringify(pending.boots) })
      if (pending.events.length === 0 && changed.length === 0)
        events.push({ kind: 'node.boot', nodes: node, actor: 'boot', data: { last: pending.boots[0]?.last } })
    }
    events.push(...pending.events)
  }
}

const observedBoot = (boot: Boot): NonNullable<Report['boot']> =>
  boot.failed === undefined ? { value: phaseOf(boot) } : { value: 'failed', reason: boot.failed.reason.slice(0, 1000) }
