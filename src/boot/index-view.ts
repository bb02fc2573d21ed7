import { contains, parseNetwork } from '../lib/ip.ts'
import type { BootImage, BootInterface, BootNode, BootView } from './view.ts'

/** A machine that is a node, and what says so. */
export interface KnownMachine {
  readonly node: BootNode
  /** The interface it boots from. */
  readonly interface: BootInterface | undefined
  readonly because: string
}

/** A view, ready to be asked by MAC and by name. */
export class ViewIndex {
  readonly view: BootView
  readonly #byMac = new Map<string, KnownMachine>()
  readonly #byName = new Map<string, BootNode>()

  constructor(view: BootView) {
    this.view = view
    const byPlace = new Map<string, BootNode>()
    for (const node of view.nodes) {
      this.#byName.set(node.name, node)
      if (node.place !== undefined) byPlace.set(node.place, node)
    }
    for (const [mac, place] of Object.entries(view.places)) {
      const node = byPlace.get(place)
      if (node !== undefined)
        this.#byMac.set(mac, {
          node,
          interface: bootInterface(view, node),
          because: `${mac} is plugged in at ${place}, the place of ${node.name}`,
        })
    }
    // What the site says of a MAC counts more than where it was seen.
    for (const node of view.nodes)
      for (const one of node.interfaces)
        if (one.mac !== undefined)
          this.#byMac.set(one.mac, {
            node,
            interface: one,
            because: `${one.mac} is interfaces.${one.name}.mac of ${node.name}`,
          })
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

/**
 * The interface a node boots from, where no MAC says so: the first that is in a network we give out addresses in. Where the
 * site does not say which those are, it is one that has addresses for strangers.
 */
function bootInterface(view: BootView, node: BootNode): BootInterface | undefined {
  const addressed = node.interfaces.filter(one => one.address !== undefined)
  return (
    addressed.find(one => isServed(view, one.network)) ??
    addressed.find(one => networkOf(view, one.network)?.unknown !== undefined) ??
    addressed[0]
  )
}

const networkOf = (view: BootView, name: string): BootView['settings']['networks'][string] | undefined =>
  Object.hasOwn(view.settings.networks, name) ? view.settings.networks[name] : undefined

export function isServed(view: BootView, network: string, own: readonly string[] = []): boolean {
  const settings = networkOf(view, network)
  if (settings === undefined) return false
  if (settings.dhcp !== undefined) return settings.dhcp
  const range = parseNetwork(settings.cidr)
  const servers = [...(view.settings.provision.servers ?? []), ...own]
  return range !== undefined && servers.some(server => contains(range, server))
}
