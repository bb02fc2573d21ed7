import { type Place, placeOf } from '../nodes/places.ts'
import type { BootNode, Waiting } from './view.ts'

/**
 * Which machine is which node, where places say so. In this order:
 *
 * 1. A MAC that the site gives a node without a location is that node, wherever it is.
 * 2. A machine seen at the location of a node is that node. Of several, the one that was plugged in last, but never instead of one
 *    that runs as the node: that was settled when it was seen (nodes/place-book.ts), and it waits.
 * 3. A MAC that the site gives a node with a location is that node, until it is seen at the location of another one, or another
 *    machine is seen at the location of this one.
 */
export interface Identities {
  /** Who is where, of machines that have their place: MAC → place. */
  readonly places: Record<string, string>
  /** Machines that would be a node, but for another one. */
  readonly waiting: Record<string, Waiting>
}

export function identitiesOf(
  nodes: readonly BootNode[],
  seen: ReadonlyMap<string, Place>,
  macOf: (node: BootNode) => string | undefined,
): Identities {
  const places: Record<string, string> = {}
  const waiting: Record<string, Waiting> = {}
  const at = new Map<string, string[]>()
  const fixed = fixedMacs(nodes)
  for (const [mac, place] of seen) {
    if (fixed.has(mac)) continue
    const where = placeOf(place)
    at.set(where, [...(at.get(where) ?? []), mac])
  }
  const located = new Set(nodes.flatMap(({ place }) => place ?? []))
  for (const node of nodes) {
    const macs = node.place === undefined ? undefined : at.get(node.place)
    if (node.place === undefined || macs === undefined) continue
    const owner = macOf(node)
    // Seen where another node belongs: it is that one.
    const elsewhere = owner === undefined ? undefined : seen.get(owner)
    const hasLeft = elsewhere !== undefined && placeOf(elsewhere) !== node.place && located.has(placeOf(elsewhere))
    const named = hasLeft ? undefined : owner
    const holder = holderOf(macs, seen, named)
    for (const mac of macs) {
      const waits = seen.get(mac)?.waits
      if (mac === holder) places[mac] = node.place
      else waiting[mac] = { node: node.name, holder: holder ?? waits ?? '', place: node.place }
    }
    if (named !== undefined && holder !== named && holder !== undefined)
      waiting[named] = { node: node.name, holder, place: node.place }
  }
  // Of those at other places nothing follows, but people want to know.
  for (const [mac, place] of seen) if (!located.has(placeOf(place))) places[mac] = placeOf(place)
  return { places, waiting }
}

/** Those of nodes without a location: where they are makes no difference. */
export const fixedMacs = (nodes: readonly BootNode[]): ReadonlySet<string> =>
  new Set(
    nodes.flatMap(({ place, interfaces }) => (place === undefined ? interfaces.flatMap(one => one.mac ?? []) : [])),
  )

/** Of machines at one place, the one that is the node. `named` is the one that the site names. */
function holderOf(
  macs: readonly string[],
  seen: ReadonlyMap<string, Place>,
  named: string | undefined,
): string | undefined {
  const free = macs.filter(mac => seen.get(mac)?.waits === undefined)
  const sinceOf = (mac: string): number => Date.parse(seen.get(mac)?.since ?? '')
  const claiming = named === undefined ? free : free.filter(mac => mac === named || seen.get(mac)?.instead === named)
  const [last] = claiming.toSorted((a, b) => sinceOf(b) - sinceOf(a))
  return last ?? named
}
