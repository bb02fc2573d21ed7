import type { NewEvent } from '../state/store.ts'
import type { Switch } from '../site/switches.ts'
import { LLDP, OPTION_82, type Place, placeOf } from './places.ts'

/** Somebody says where a machine is plugged in. */
export interface PlaceClaim {
  readonly mac: string
  readonly switch: string
  readonly port: string
  readonly source: string
  readonly at: string
}

/** What the site says, as far as places go. */
export interface PlaceSite {
  readonly switches: Readonly<Record<string, Switch>>
  /**
   * What a machine at this place is, if a node is there; and the MAC that the site gives the interface it boots from. The node is another
   * than that whose location it is where an operator has swapped them.
   */
  at(place: string): { readonly node: string; readonly mac?: string | undefined } | undefined
  /** Whether the site gives this MAC to a node without a location: it is that one, wherever it is. */
  isFixed(mac: string): boolean
  /** The node that a machine would be, but for the one that holds it. */
  waiting?(mac: string): { readonly node: string; readonly holder: string } | undefined
}

export interface PlaceWorld {
  readonly site: PlaceSite
  /** The machine that is this node now: up and heard, or on its way. */
  readonly holderOf: (node: string) => Holder | undefined
}

export interface Holder {
  readonly mac: string
  readonly isUp: boolean
}

/** More machines than any site has; whoever is on the network can make some up. */
const MOST = 100_000
/** Of machines that wait for one place, or are seen at one that has no node. */
const MOST_AT_ONE = 64

/**
 * Where machines are, and which of several at one place has it. A claim is settled when it is made, not when it is read: so that a
 * machine never becomes a node that another one runs as, not even for a moment.
 */
export class PlaceBook {
  readonly #byMac: Map<string, Place>
  readonly #byPlace = new Map<string, Set<string>>()

  constructor(places: ReadonlyMap<string, Place> = new Map()) {
    this.#byMac = new Map(places)
    for (const [mac, place] of places) this.#at(placeOf(place)).add(mac)
  }

  get(mac: string): Place | undefined {
    return this.#byMac.get(mac)
  }

  entries(): IterableIterator<[string, Place]> {
    return this.#byMac.entries()
  }

  /** What is new after it: places that changed, null for those that are no more, and what to tell. */
  take(claim: PlaceClaim, world: PlaceWorld): { changes: Map<string, Place | null>; events: NewEvent[] } {
    const changes = new Map<string, Place | null>()
    const { mac } = claim
    const before = this.#byMac.get(mac)
    const where = placeOf(claim)
    const isFixed = world.site.isFixed(mac)
    const { node, mac: owner } = (isFixed ? undefined : world.site.at(where)) ?? {}
    const others = [...(this.#byPlace.get(where) ?? [])].filter(other => other !== mac)
    if (
      before === undefined
        ? this.#byMac.size >= MOST || others.length >= MOST_AT_ONE
        : isWeaker(claim, before, world.site)
    )
      return { changes, events: [] }

    const holder = node === undefined ? undefined : world.holderOf(node)
    const waits = holder === undefined || holder.mac === mac || this.#hasLeft(holder, where) ? undefined : holder.mac
    const instead = waits === undefined && owner !== mac ? owner : undefined
    const hasMoved = before !== undefined && placeOf(before) !== where
    const from = hasMoved ? placeOf(before) : before?.from
    const after: Place = {
      switch: claim.switch,
      port: claim.port,
      source: claim.source,
      since: before === undefined || hasMoved ? claim.at : before.since,
      ...(from !== undefined && { from }),
      ...(waits !== undefined && { waits }),
      ...(instead !== undefined && { instead }),
    }
    // Whoever was there before is gone, unless it is still heard; where no node is, several may well be.
    const gone = node === undefined || waits !== undefined ? [] : others.filter(other => !this.#isWaiting(other))
    if (before !== undefined && isSame(before, after) && gone.length === 0) return { changes, events: [] }
    this.#put(mac, after, changes)
    for (const other of gone) this.#put(other, null, changes)
    return { changes, events: tell({ claim, before, after, node, gone, hasMoved, isFixed }) }
  }

  /** What is left of it: of a machine that runs as a node, its place. */
  forget(mac: string, isNode: boolean): Place | null {
    const before = this.#byMac.get(mac)
    const { from: _, ...place } = before ?? {}
    const left = before === undefined || !isNode ? null : (place as Place)
    this.#put(mac, left, new Map())
    return left
  }

  /** It was on its way when it was last seen here, and has been seen elsewhere since. */
  #hasLeft({ mac, isUp }: Holder, where: string): boolean {
    const seen = this.#byMac.get(mac)
    return !isUp && seen !== undefined && placeOf(seen) !== where
  }

  #isWaiting(mac: string): boolean {
    return this.#byMac.get(mac)?.waits !== undefined
  }

  #put(mac: string, place: Place | null, changes: Map<string, Place | null>): void {
    const before = this.#byMac.get(mac)
    if (before !== undefined) this.#leave(placeOf(before), mac)
    if (place === null) this.#byMac.delete(mac)
    else {
      this.#byMac.set(mac, place)
      this.#at(placeOf(place)).add(mac)
    }
    changes.set(mac, place)
  }

  #at(place: string): Set<string> {
    let macs = this.#byPlace.get(place)
    if (macs === undefined) this.#byPlace.set(place, (macs = new Set()))
    return macs
  }

  #leave(place: string, mac: string): void {
    const macs = this.#byPlace.get(place)
    macs?.delete(mac)
    if (macs?.size === 0) this.#byPlace.delete(place)
  }
}

/**
 * What a relay says of a port counts more than what a machine says it heard there. But a switch that says nothing over DHCP can
 * only be known from LLDP: then the machine has moved to it.
 */
const isWeaker = (claim: PlaceClaim, before: Place, { switches }: PlaceSite): boolean =>
  claim.source === LLDP &&
  before.source === OPTION_82 &&
  (claim.switch === before.switch || switches[claim.switch]?.circuit !== undefined)

const isSame = (a: Place, b: Place): boolean =>
  placeOf(a) === placeOf(b) && a.source === b.source && a.waits === b.waits && a.instead === b.instead

interface Told {
  readonly claim: PlaceClaim
  readonly before: Place | undefined
  readonly after: Place
  readonly node: string | undefined
  readonly gone: readonly string[]
  readonly hasMoved: boolean
  readonly isFixed: boolean
}

function tell({ claim, before, after, node, gone, hasMoved, isFixed }: Told): NewEvent[] {
  const { mac, source } = claim
  const place = placeOf(after)
  const event = (kind: string, data: object): NewEvent => ({
    kind,
    ...(node !== undefined && { nodes: node }),
    actor: 'boot',
    data: { mac, place, source, ...data },
  })
  const events: NewEvent[] = []
  if (hasMoved && before !== undefined) events.push(event('machine.moved', { from: placeOf(before) }))
  if (node === undefined && !isFixed && (before === undefined || hasMoved)) events.push(event('machine.unplaced', {}))
  if (after.waits !== undefined && after.waits !== before?.waits)
    events.push(event('node.place.conflict', { holder: after.waits }))
  const replaced = [
    ...gone,
    ...(after.instead === undefined || after.instead === before?.instead ? [] : [after.instead]),
  ]
  if (replaced.length > 0) events.push(event('node.replaced', { before: [...new Set(replaced)] }))
  return events.length > 0 ? events : [event('machine.placed', {})]
}
