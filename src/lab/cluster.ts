import { type BootInterface, type BootNode, bootNode } from '../boot/view.ts'
import { addToAddress, contains, parseNetwork } from '../lib/ip.ts'
import { MusterError } from '../lib/errors.ts'
import type { Site } from '../site/site.ts'
import { labMac } from './simulated/simulate.ts'

/** A node of the site that the lab plays. */
export interface LabNode {
  readonly name: string
  readonly mac: string
  /** The image it boots, without channel. */
  readonly image: string
}

/** Which part of a site a lab plays, and what it needs for that. */
export interface Cast {
  readonly machines: readonly LabNode[]
  readonly simulated: readonly LabNode[]
  /** Names of images, each once. */
  readonly images: readonly string[]
  /** The head's: where the site says its boot servers are, or else where its gateway is. */
  readonly addresses: readonly { readonly cidr: string }[]
  /** What switches would say: for nodes that are known by their place. */
  readonly places: readonly { readonly mac: string; readonly switch: string; readonly port: string }[]
}

export interface Counts {
  readonly machines: number
  readonly simulated: number
  /** There is a network with machines on it: somebody may have to be discovered. */
  readonly isWired: boolean
}

/** The first nodes of the site, in its order, that boot an image from the network. */
export function castOf(site: Site, counts: Counts): Cast {
  const wanted = counts.machines + counts.simulated
  const chosen: { node: BootNode; lab: LabNode; place?: Cast['places'][number] }[] = []
  for (const node of site.nodes.values()) {
    if (chosen.length === wanted) break
    const { value } = site.resolve(node)
    const found = playable(bootNode(node.name, value), value)
    if (found !== undefined) chosen.push(found)
  }
  if (chosen.length < wanted)
    throw new MusterError(
      'USAGE',
      `the site has ${chosen.length} nodes that boot an image from the network, not ${wanted}`,
      {
        hint: 'ask for fewer, or add some: they need boot.image, an address, and a MAC or a place (switch and port)',
      },
    )
  const labs = chosen.map(({ lab }) => lab)
  return {
    machines: labs.slice(0, counts.machines),
    simulated: labs.slice(counts.machines),
    images: [
      ...new Set([
        ...labs.map(({ image }) => image),
        ...(counts.isWired ? [site.provision.discovery ?? site.defaultImage].filter(name => name !== undefined) : []),
      ]),
    ],
    addresses: headAddresses(
      site,
      chosen.flatMap(({ node }) => node.interfaces),
    ),
    places: chosen.flatMap(({ place }) => place ?? []),
  }
}

interface Located {
  readonly location?: { readonly switch?: string; readonly port?: string }
}

function playable(
  node: BootNode,
  { location }: Located,
): { node: BootNode; lab: LabNode; place?: Cast['places'][number] } | undefined {
  if (node.from !== 'network' || node.root !== 'ram' || node.image === undefined) return undefined
  if (!node.interfaces.some(one => one.address !== undefined)) return undefined
  const known = node.interfaces.find(one => one.mac !== undefined)?.mac
  const mac = known ?? labMac(node.name)
  const lab = { name: node.name, mac, image: node.image.split('@')[0] ?? '' }
  if (known !== undefined) return { node, lab }
  if (location?.switch === undefined || location.port === undefined) return undefined
  return { node, lab, place: { mac, switch: location.switch, port: location.port } }
}

function headAddresses(site: Site, interfaces: readonly BootInterface[]): { cidr: string }[] {
  const { servers } = site.provision
  const used = new Set(interfaces.map(one => one.network))
  const networks = [...site.networks].filter(([name]) => used.has(name) || servers !== undefined)
  const addresses = networks.flatMap(([, network]) => {
    const range = parseNetwork(network.cidr)
    if (range === undefined || range.kind !== 'ipv4') return []
    const here =
      servers === undefined
        ? network.unknown === undefined
          ? []
          : [network.gateway ?? addToAddress(range.base, 1)]
        : servers.filter(server => contains(range, server))
    return here.map(address => ({ cidr: `${address}/${range.bits}` }))
  })
  if (addresses.length === 0)
    throw new MusterError('USAGE', 'the site does not say where its boot servers are', {
      hint: 'add to site.yaml: provision: { servers: [ADDRESS] }, an address in the network nodes boot from',
    })
  return addresses
}
