import { contains, parseNetwork } from '../lib/ip.ts'
import type { PlaceSite } from '../nodes/place-book.ts'
import type { Swap } from '../nodes/swaps.ts'
import { fixedMacs } from './identity.ts'
import type { BootImage, BootInterface, BootNode, BootView, Waiting } from './view.ts'

/** A machine that is a node, and what says so. */
export interface KnownMachine {
  readonly node: BootNode
  /** The interface it boots from. */
  readonly interface: BootInterface | undefined
  readonly because: string
}

/** A view, ready to be asked by MAC and by name. */
export class ViewIndex implements PlaceSite {
  readonly view: BootView
  readonly #byMac = new Map<string, KnownMachine>()
  readonly #byName = new Map<string, BootNode>()
  readonly #byPlace = new Map<string, BootNode>()
  readonly #waiting = new Map<string, Waiting>()
  readonly #fixed: ReadonlySet<string>
  /** Node → the one that its machines are instead. */
  readonly #swapped = new Map<string, BootNode>()

  constructor(view: BootView) {
    this.view = view
    this.#fixed = fixedMacs(view.nodes)
    const byPlace = this.#byPlace
    for (const node of view.nodes) {
      this.#byName.set(node.name, node)
      if (node.place !== undefined) byPlace.set(node.place, node)
    }
    for (const [mac, place] of Object.entries(view.places)) {
      const node = byPlace.get(place)
      if (node !== undefined)
        this.#byMac.set(mac, {
          node,
          interface: bootInterface(view.settings, node),
          because: `${mac} is plugged in at ${place}, the place of ${node.name}`,
        })
    }
    // What the site says of a MAC counts more than where it was seen, unless it says where the node is, too: see identity.ts.
    for (const node of view.nodes)
      for (const one of node.interfaces)
        if (one.mac !== undefined && !Object.hasOwn(view.waiting ?? {}, one.mac) && !this.#hasMoved(one.mac, node))
          this.#byMac.set(one.mac, {
            node,
            interface: one,
            because: `${one.mac} is interfaces.${one.name}.mac of ${node.name}`,
          })
    for (const swap of view.swaps ?? []) this.#swap(swap)
    // Until it boots, whoever is there is what it was.
    const running = new Map((view.swaps ?? []).flatMap(swap => Object.entries(swap.running)))
    for (const [mac, { node, ...more }] of Object.entries(view.waiting ?? {}))
      this.#waiting.set(mac, { node: running.get(more.holder) ?? this.#swapped.get(node)?.name ?? node, ...more })
  }

  /** Laid over everything else: each of the two has the machines of the other. */
  #swap(swap: Swap): void {
    const [one, other] = [this.#byName.get(swap.node), this.#byName.get(swap.with)]
    // One of them is no node of the site any more.
    if (one === undefined || other === undefined) return
    if (swap.isActive) this.#swapped.set(one.name, other).set(other.name, one)
    const held = new Map(Object.entries(swap.running).map(([mac, node]) => [node, mac]))
    for (const [mac, known] of this.#byMac) {
      const { node } = known
      if ((node !== one && node !== other) || !boots(this.view.settings, known)) continue
      const target = this.#byName.get(swap.running[mac] ?? '') ?? this.#swapped.get(node.name) ?? node
      const holder = held.get(target.name)
      if (holder !== undefined && holder !== mac) {
        this.#byMac.delete(mac)
        this.#waiting.set(mac, { node: target.name, holder })
      } else if (target !== node) this.#byMac.set(mac, swappedTo(this.view.settings, target, known, swap))
    }
  }

  /** As it is once this machine begins to boot: what ran on it before runs no more. */
  begun(mac: string): ViewIndex {
    const swaps = this.view.swaps ?? []
    if (!swaps.some(({ running }) => Object.hasOwn(running, mac))) return this
    const without = (running: Swap['running']): Swap['running'] =>
      Object.fromEntries(Object.entries(running).filter(([one]) => one !== mac))
    return new ViewIndex({ ...this.view, swaps: swaps.map(swap => ({ ...swap, running: without(swap.running) })) })
  }

  #hasMoved(mac: string, node: BootNode): boolean {
    const seen = this.#byMac.get(mac)?.node
    return node.place !== undefined && seen !== undefined && seen !== node
  }

  /** What keeps a machine from being a node. */
  waiting(mac: string): Waiting | undefined {
    return this.#waiting.get(mac)
  }

  get switches(): PlaceSite['switches'] {
    return this.view.settings.switches ?? {}
  }

  isFixed(mac: string): boolean {
    return this.#fixed.has(mac)
  }

  at(place: string): ReturnType<PlaceSite['at']> {
    const node = this.#byPlace.get(place)
    return node && { node: (this.#swapped.get(node.name) ?? node).name, mac: bootMac(this.view.settings, node) }
  }

  machine(mac: string): KnownMachine | undefined {
    return this.#byMac.get(mac)
  }

  node(name: string): BootNode | undefined {
    return this.#byName.get(name)
  }

  image(reference: string): BootImage | undefined {
    // An image may be named constructor.
    return Object.hasOwn(this.view.images, reference) ? this.view.images[reference] : undefined
  }

  /** Every machine that is known: MAC and who it is. */
  machines(): IterableIterator<[string, KnownMachine]> {
    return this.#byMac.entries()
  }
}

/** A management controller stays with its machine: only what it boots from makes it a node. */
const boots = (settings: Settings, { node, interface: one }: KnownMachine): boolean =>
  one === undefined || one.network === bootInterface(settings, node)?.network

function swappedTo(settings: Settings, node: BootNode, known: KnownMachine, swap: Swap): KnownMachine {
  const { by, at, why, isActive } = swap
  const said = `${by} swapped ${swap.node} and ${swap.with} at ${at}${why === undefined ? '' : `: ${why}`}`
  const end = isActive ? '' : '; that was taken back, and holds until it boots'
  return {
    node,
    interface: node.interfaces.find(({ name }) => name === known.interface?.name) ?? bootInterface(settings, node),
    because: `${known.because}, but ${said}${end}`,
  }
}

/**
 * The interface a node boots from, where no MAC says so: the first that is in a network we give out addresses in. Where the
 * site does not say which those are, it is one that has addresses for strangers.
 */
function bootInterface(settings: Settings, node: BootNode): BootInterface | undefined {
  const addressed = node.interfaces.filter(one => one.address !== undefined)
  return (
    addressed.find(one => isServed({ settings }, one.network)) ??
    addressed.find(one => networkOf(settings, one.network)?.unknown !== undefined) ??
    addressed[0]
  )
}

/** What the site says its MAC is, of the interface it boots from. */
export const bootMac = (settings: Settings, node: BootNode): string | undefined => bootInterface(settings, node)?.mac

type Settings = BootView['settings']

const networkOf = (settings: Settings, name: string): Settings['networks'][string] | undefined =>
  Object.hasOwn(settings.networks, name) ? settings.networks[name] : undefined

export function isServed(view: Pick<BootView, 'settings'>, network: string, own: readonly string[] = []): boolean {
  const settings = networkOf(view.settings, network)
  if (settings === undefined) return false
  if (settings.dhcp !== undefined) return settings.dhcp
  const range = parseNetwork(settings.cidr)
  const servers = [...(view.settings.provision.servers ?? []), ...own]
  return range !== undefined && servers.some(server => contains(range, server))
}
