import { setTimeout as pause } from 'node:timers/promises'
import { parseNodeSet } from '../lib/nodeset/index.ts'
import { MusterError } from '../lib/errors.ts'
import { OBSERVED, Observed, type Report, mergeReport } from '../state/observed.ts'
import type { Change, NewEvent, Store } from '../state/store.ts'
import { type Boot, Boots, type PhaseSighting, advance, isOver, phaseOf, stuck } from './boots.ts'
import { MACHINE, Machine, isNews, machineId, machineSeen, placeSeen, placedMachine } from './machines.ts'
import type { Phase } from './phases.ts'
import { type Holder, PlaceBook, type PlaceClaim, type PlaceSite } from './place-book.ts'
import { LLDP, OPTION_82, PLACE, Place, placeOf } from './places.ts'
import { placeOfRelay } from './relay-option.ts'
import type { Sighting, SightingBatch } from './reports.ts'
import { SWAP, Swap, type SwapRequest, type SwapStep, Swaps } from './swaps.ts'

export interface RecorderOptions {
  readonly now?: () => Date
  /** What boot servers may say of: a node that is no longer there is not recorded. */
  readonly isNode: (name: string) => boolean
  /** What the site says of places; nothing is learnt of them before there is one. */
  readonly site?: () => PlaceSite | undefined
}

export const BOOTS = 'boots/'

/** Three heartbeats and a little: one that is lost is no silence. */
const SILENT_AFTER = 33_000
/** Changes of this long are written together: ten nodes or ten thousand cost one write. */
const GATHER = 200
const RETRIES = 10
/** More strangers than any delivery of racks brings. */
const MOST_MACHINES = 10_000
/** Longer than any machine takes from shutdown to its firmware asking for an address. */
const LONG_GONE = 15 * 60_000
/** After a gap so long we may have missed steps of boots. */
const LONG = 60_000

type Status = Extract<Sighting, { kind: 'status' }>

/** Of one node, what is to be written next. */
interface Pending {
  news: Report
  boots?: readonly Boot[]
  readonly events: NewEvent[]
}

/** Of machines, what is to be written next. */
interface PendingMachines {
  readonly machines: Map<string, Machine>
  /** Places and swaps by key; null for those that are no more. */
  readonly others: Map<string, Place | Swap | null>
  readonly events: NewEvent[]
}
const nothing = (): PendingMachines => ({ machines: new Map(), others: new Map(), events: [] })

/** Everything that is kept of earlier days. */
interface Known {
  readonly boots: Map<string, readonly Boot[]>
  readonly machines: Map<string, Machine>
  readonly places: Map<string, Place>
  readonly swaps: readonly Swap[]
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
  readonly #places: PlaceBook
  readonly #swaps: Swaps
  /** When each node was last heard, in milliseconds. */
  readonly #heard = new Map<string, number>()
  /** Of those, who was not really heard yet: it was up when we were last here. */
  readonly #presumed = new Set<string>()
  /** Since when a node is not up any more. */
  readonly #gone = new Map<string, number>()
  readonly #silent = new Set<string>()
  readonly #status = new Map<string, Status>()
  #pending = new Map<string, Pending>()
  #pendingMachines = nothing()
  readonly #listeners = new Set<(phase: Phase, seconds: number) => void>()
  /** The write that will take what is pending, and the one under way. */
  #gathering: Promise<void> | undefined
  #writing: Promise<void> | undefined
  readonly #began: number
  #swept: number
  /** Since when we have been looking without a gap. */
  #watched: number

  private constructor(store: Store, options: RecorderOptions, known: Known) {
    this.#store = store
    this.#options = options
    this.#boots = known.boots
    this.#machines = known.machines
    this.#places = new PlaceBook(known.places)
    this.#swaps = new Swaps(known.swaps)
    this.#began = this.#now().getTime()
    this.#swept = this.#began
    this.#watched = this.#swept
  }

  static async load(store: Store, options: RecorderOptions): Promise<Recorder> {
    const boots = new Map(
      (await store.list(BOOTS)).map(({ key, value }) => [key.slice(BOOTS.length), Boots.parse(JSON.parse(value))]),
    )
    const machines = (await store.list(MACHINE)).map(({ value }) => Machine.parse(JSON.parse(value)))
    const places = (await store.list(PLACE)).map(
      ({ key, value }) => [key.slice(PLACE.length), Place.parse(JSON.parse(value))] as const,
    )
    const recorder = new Recorder(store, options, {
      boots,
      machines: new Map(machines.map(machine => [machine.id, machine])),
      places: new Map(places),
      swaps: (await store.list(SWAP)).map(({ value }) => Swap.parse(JSON.parse(value))),
    })
    // Whoever was up when we last looked has from now on time to be heard.
    for (const { key, value } of await store.list(OBSERVED))
      if (Observed.parse(JSON.parse(value)).health !== undefined) recorder.#presume(key.slice(OBSERVED.length))
    return recorder
  }

  #presume(node: string): void {
    this.#heard.set(node, this.#now().getTime())
    this.#presumed.add(node)
  }

  /** Told how long each phase of a boot took. */
  onPhase(listener: (phase: Phase, seconds: number) => void): void {
    this.#listeners.add(listener)
  }

  boots(node: string): readonly Boot[] {
    return this.#boots.get(node) ?? []
  }

  /** Those that ran the discovery system, and those of which only the place is known. */
  machines(): readonly Machine[] {
    const unheard = [...this.#places.entries()].filter(([mac]) => !this.#machines.has(machineId(mac)))
    return [...this.#machines.values(), ...unheard.map(([mac, place]) => placedMachine(mac, place))]
  }

  machine(id: string): Machine {
    const machine = this.#machines.get(id) ?? this.machines().find(one => one.id === id)
    if (machine === undefined) throw new MusterError('MACHINE_UNKNOWN', `no machine ${id} was discovered`)
    return machine
  }

  place(mac: string): Place | undefined {
    return this.#places.get(mac)
  }

  /** What it said, and where it is unless it runs as a node. */
  async forget(id: string, event: Omit<NewEvent, 'kind'>): Promise<void> {
    const { mac } = this.machine(id)
    const left = this.#places.forget(mac, this.#runsAs(mac) !== undefined)
    await this.#store.commit(
      [
        { key: MACHINE + id, value: null },
        { key: PLACE + mac, value: left === null ? null : JSON.stringify(left) },
      ],
      [{ ...event, kind: 'machine.forgotten', data: { mac } }],
    )
    this.#machines.delete(id)
    this.#pendingMachines.machines.delete(id)
    this.#pendingMachines.others.delete(PLACE + mac)
  }

  swapOf(node: string): Swap | undefined {
    return this.#swaps.of(node)
  }

  /** Two nodes change machines, each with the next boot of its new one. Resolves once it is stored. */
  async swap(request: Pick<SwapRequest, 'node' | 'with' | 'why' | 'actor'>): Promise<Swap | undefined> {
    const running = this.#running([request.node, request.with])
    await this.#swapped(this.#swaps.swap({ ...request, running, at: this.#now().toISOString() }))
    return this.#swaps.of(request.node)
  }

  /** Undefined once nothing is left of it. */
  async undoSwap(request: Pick<SwapRequest, 'node' | 'why' | 'actor'>): Promise<Swap | undefined> {
    const before = this.#swaps.of(request.node)
    const running = before === undefined ? {} : this.#running([before.node, before.with])
    await this.#swapped(this.#swaps.undo({ ...request, running, at: this.#now().toISOString() }))
    return this.#swaps.of(request.node)
  }

  /** The machine that is this node: up and heard, or booting. */
  #holderOf(node: string): Holder | undefined {
    const [boot] = this.boots(node)
    if (boot === undefined || boot.failed !== undefined) return undefined
    const isUp = isOver(boot)
    return isUp && !this.#heard.has(node) ? undefined : { mac: boot.mac, isUp }
  }

  #running(nodes: readonly string[]): Record<string, string> {
    return Object.fromEntries(
      nodes.flatMap(node => {
        const holder = this.#holderOf(node)
        return holder === undefined ? [] : [[holder.mac, node]]
      }),
    )
  }

  #runsAs(mac: string): string | undefined {
    return [...this.#boots.keys()].find(node => this.#holderOf(node)?.mac === mac)
  }

  async #swapped(step: SwapStep): Promise<void> {
    this.#notice(step)
    await this.#written()
  }

  #notice({ swaps, event }: SwapStep): void {
    for (const [node, swap] of swaps) this.#pendingMachines.others.set(SWAP + node, swap)
    this.#pendingMachines.events.push(event)
  }

  /** Firmware asks for an address: what ran before runs no more. */
  #begins(mac: string, kind = 'node.swap.booted'): void {
    const step = this.#swaps.booted(mac)
    if (step !== undefined) this.#notice({ ...step, event: { ...step.event, kind } })
  }

  /** The machine that this one waits for since nodes were swapped may never boot again. */
  #isDone(mac: string, isGone: (node: string) => boolean): void {
    const waiting = this.#options.site?.()?.waiting?.(mac)
    if (waiting !== undefined && isGone(waiting.node)) this.#begins(waiting.holder, 'node.swap.gone')
  }

  /** A machine that is no node asks for its script: switched on anew, it need not wait for a node that is silent. */
  #startsAnew(mac: string, at: string): void {
    const place = this.#places.get(mac)
    if (place?.waits !== undefined) this.#see({ ...place, mac, at })
    this.#isDone(mac, node => this.#holderOf(node) === undefined)
  }

  /** Somebody says where machines are, and is believed against all but a node that is up and heard. Resolves once it is stored. */
  async put(claims: readonly PlaceClaim[], event: NewEvent): Promise<void> {
    const { actor, from } = event
    const holderOf = (node: string): Holder | undefined => {
      const holder = this.#presumed.has(node) ? undefined : this.#holderOf(node)
      return holder?.isUp === true ? holder : undefined
    }
    const told = claims.flatMap(claim => this.#settle(claim, holderOf))
    const others = told.filter(({ kind }) => kind !== 'machine.placed')
    this.#pendingMachines.events.push(
      event,
      ...others.map(other => ({ ...other, actor, ...(from !== undefined && { from }) })),
    )
    await this.#written()
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
      this.#leave(node, at)
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
    if (sighting.kind === 'relayed' || (sighting.kind === 'phase' && sighting.phase === 'dhcp'))
      this.#begins(sighting.mac)
    if (sighting.kind === 'relayed') {
      const place = placeOfRelay(sighting, this.#options.site?.()?.switches ?? {})
      if (place !== undefined) this.#see({ ...place, mac: sighting.mac, source: OPTION_82, at: sighting.at })
      return
    }
    const { node } = sighting
    if (sighting.kind === 'phase' && sighting.phase === 'loader' && node === undefined)
      this.#startsAnew(sighting.mac, sighting.at)
    if (node === undefined || !this.#options.isNode(node)) return
    if (sighting.kind === 'phase') this.#phase(node, sighting)
    else if (sighting.kind === 'status') this.#statusOf(node, sighting)
    else this.#pendingOf(node).events.push(enrolment(node, sighting))
  }

  #machine({ facts, at, server }: Extract<Sighting, { kind: 'machine' }>): void {
    const before = this.#machines.get(machineId(facts.mac))
    // Whoever is on the network can make machines up.
    if (before === undefined && this.#machines.size >= MOST_MACHINES) return
    const after = machineSeen(before, facts, at, server)
    this.#machines.set(after.id, after)
    if (isNews(before, after)) this.#pendingMachines.machines.set(after.id, after)
    const said = facts.lldp.length > 0 ? placeSeen(after) : undefined
    const known = this.#places.get(facts.mac)
    if (known?.waits !== undefined && (said === undefined || placeOf(said) === placeOf(known))) {
      // A node that only restarts must find its place free.
      const node = this.#options.site?.()?.at(placeOf(known))?.node
      if (node === undefined || this.#isLongGone(node)) this.#see({ ...known, mac: facts.mac, at })
    } else if (said !== undefined) this.#see({ ...said, mac: facts.mac, source: LLDP, at })
    this.#isDone(facts.mac, node => this.#isLongGone(node))
  }

  /** Whether nothing was heard of the node for longer than any restart takes. */
  #isLongGone(node: string): boolean {
    return !this.#heard.has(node) && this.#now().getTime() - (this.#gone.get(node) ?? this.#began) >= LONG_GONE
  }

  #see(claim: PlaceClaim): void {
    this.#pendingMachines.events.push(...this.#settle(claim))
  }

  #settle(claim: PlaceClaim, holderOf = (node: string): Holder | undefined => this.#holderOf(node)): NewEvent[] {
    const site = this.#options.site?.() ?? NO_SITE
    const { changes, events } = this.#places.take(claim, { site, holderOf })
    for (const [mac, place] of changes) this.#pendingMachines.others.set(PLACE + mac, place)
    return events
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
    this.#leave(node, this.#now().getTime())
    const pending = this.#pendingOf(node)
    pending.news = { ...pending.news, image: null, health: null, config: null }
  }

  #leave(node: string, at: number): void {
    this.#presumed.delete(node)
    if (this.#heard.delete(node)) this.#gone.set(node, at)
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
    const { health, image, files } = status
    pending.news = {
      ...pending.news,
      health: { value: health.status, ...(health.reason !== '' && { reason: health.reason }) },
      ...(image !== undefined && { image: { value: image } }),
      ...(files !== undefined && {
        config:
          files.version === ''
            ? null
            : { value: files.version, ...(files.problem !== '' && { reason: files.problem }) },
      }),
    }
  }

  #hear(node: string): void {
    const [boot] = this.boots(node)
    // Sent before it went down.
    if (!this.#options.isNode(node) || boot === undefined || !isOver(boot)) return
    this.#heard.set(node, this.#now().getTime())
    this.#presumed.delete(node)
    this.#gone.delete(node)
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
    const { machines, events } = this.#pendingMachines
    if (this.#pending.size === 0 && machines.size === 0 && events.length === 0) await this.#writing
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
    this.#pendingMachines = nothing()
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
      const later = this.#pendingMachines
      this.#pendingMachines = {
        machines: new Map([...machines.machines, ...later.machines]),
        others: new Map([...machines.others, ...later.others]),
        events: [...machines.events, ...later.events],
      }
      throw error
    }
  }

  async #write(
    nodes: ReadonlyMap<string, Pending>,
    { machines, others, events: seen }: PendingMachines,
  ): Promise<void> {
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
      for (const [key, value] of others) changes.push({ key, value: value === null ? null : JSON.stringify(value) })
      events.push(...seen)
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

function enrolment(node: string, sighting: Extract<Sighting, { kind: 'enrolled' | 'enrol-refused' }>): NewEvent {
  const { mac, address, server, boot } = sighting
  const [kind, more] =
    sighting.kind === 'enrolled' ? ['node.enrolled', {}] : ['node.enrol.refused', { reason: sighting.reason }]
  return { kind, nodes: node, actor: 'boot', trace: boot, data: { mac, address, server, ...more } }
}

const NO_SITE: PlaceSite = { switches: {}, at: () => undefined, isFixed: () => false }

const observedBoot = (boot: Boot): NonNullable<Report['boot']> =>
  boot.failed === undefined ? { value: phaseOf(boot) } : { value: 'failed', reason: boot.failed.reason.slice(0, 1000) }
