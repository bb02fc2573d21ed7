import {
  canonicalAddress,
  contains,
  isAddress,
  lastAddress,
  parseNetwork,
  type Network as AddressRange,
} from '../lib/ip.ts'
import { didYouMean } from '../lib/suggest.ts'
import { FILE_KINDS } from './file-kinds.ts'
import { NOTHING_SAID } from './file-plan.ts'
import { type Origin, type Value, valueAt } from './layers.ts'
import { type Problem, tidyProblems } from './problems.ts'
import type { Plain } from './paths.ts'
import { checkRecipes } from './render-recipe.ts'
import type { Network } from './schema.ts'
import type { SiteNode } from './members.ts'
import type { Site } from './site.ts'
import { treeAt } from './validate.ts'

/**
 * Everything that can be wrong with a site, in file order: files that cannot be read, values that do not fit, references
 * to nothing, templates that fail, addresses outside their network, two nodes with one address, MAC or place.
 */
export function checkSite(site: Site): Problem[] {
  const unreadable = site.files.problems
  const invalid = site.files.files.flatMap(file => file.validate())
  const structural = [
    ...unreadable,
    ...invalid,
    ...site.problems,
    ...checkNetworks(site),
    ...checkProvision(site),
    ...checkSwitches(site),
    ...checkChannels(site),
    ...checkRecipes(site),
  ]
  return tidyProblems([...structural, ...checkNodes(site)])
}

function checkNetworks(site: Site): Problem[] {
  const main = site.files.files.find(file => file.kind === 'site')
  const isKnown = site.files.problems.some(problem => problem.file === 'site.yaml')
  if (main === undefined) return isKnown ? [] : [{ file: 'site.yaml', line: 1, column: 1, message: 'is missing' }]
  const problems: Problem[] = []
  for (const [name, network] of site.networks) {
    const range = parseNetwork(network.cidr)
    const inside = (key: 'gateway' | 'unknown', text: string | undefined, addresses: readonly string[]): void => {
      if (range === undefined || text === undefined || addresses.every(address => contains(range, address))) return
      const { line, column } = treeAt(main.tree, ['networks', name, key]) ?? { line: 1, column: 1 }
      const path = `networks.${name}.${key}`
      problems.push({ file: main.path, line, column, path, message: `${text} is outside ${network.cidr}` })
    }
    const unknown = network.unknown === undefined ? undefined : parseNetwork(network.unknown)
    inside('gateway', network.gateway, network.gateway === undefined ? [] : [network.gateway])
    inside('unknown', network.unknown, unknown === undefined ? [] : [unknown.base, lastAddress(unknown)])
  }
  return problems
}

/** Two switches that say the same of themselves cannot be told apart. */
function checkSwitches(site: Site): Problem[] {
  const main = site.files.files.find(file => file.kind === 'site')
  const claimed = new Map<string, string>()
  return [...site.switches].flatMap(([name, { circuit, remote, relay }]) => {
    if (circuit === undefined) return []
    const sent = remote ?? (relay === undefined ? name : '')
    const key = `${sent.toLowerCase().replaceAll(/[:.-]/g, '')} ${relay ?? ''}`
    const other = claimed.get(key)
    claimed.set(key, other ?? name)
    if (other === undefined) return []
    const path = ['switches', name, remote === undefined && relay !== undefined ? 'relay' : 'remote']
    const { line, column } = treeAt(main?.tree, path) ?? treeAt(main?.tree, path.slice(0, 2)) ?? { line: 1, column: 1 }
    const message = `option 82 of ${name} and ${other} cannot be told apart: give each another remote or relay`
    return [{ file: 'site.yaml', line, column, path: path.join('.'), message }]
  })
}

/** A channel may only ask for signatures of keys there are. */
function checkChannels(site: Site): Problem[] {
  const main = site.files.files.find(file => file.kind === 'site')
  const keys = Object.keys(site.trust.keys)
  return [...site.channels].flatMap(([channel, { signed = [], after }]) => {
    const wrong = signed.flatMap((key, index) =>
      keys.includes(key)
        ? []
        : [[['signed', String(index)], `there is no key ${key} in trust.keys${didYouMean(key, keys)}`] as const],
    )
    const itself = after?.channel === channel ? [[['after', 'channel'], 'is this channel itself'] as const] : []
    return [...wrong, ...itself].map(([below, message]) => {
      const path = ['channels', channel, ...below]
      const { line, column } = treeAt(main?.tree, path) ?? { line: 1, column: 1 }
      return { file: 'site.yaml', line, column, path: path.join('.'), message }
    })
  })
}

function checkProvision(site: Site): Problem[] {
  const main = site.files.files.find(file => file.kind === 'site')
  const problems: Problem[] = []
  const report = (path: readonly string[], message: string): void => {
    const { line, column } = treeAt(main?.tree, ['provision', ...path]) ?? { line: 1, column: 1 }
    problems.push({ file: 'site.yaml', line, column, path: ['provision', ...path].join('.'), message })
  }
  const { discovery, loaders, port, tlsPort, servers = [] } = site.provision
  if (port === tlsPort)
    report(
      [treeAt(main?.tree, ['provision', 'tlsPort']) === undefined ? 'port' : 'tlsPort'],
      `${port} cannot be both: provision.port is plain, provision.tlsPort is TLS`,
    )
  if (discovery !== undefined && !site.files.images.has(discovery))
    report(
      ['discovery'],
      `there is no image ${discovery} (images/${discovery}/image.yaml)${didYouMean(discovery, site.files.images)}`,
    )
  for (const [kind, source] of Object.entries(loaders))
    if (source !== undefined && !site.files.blobs.has(source))
      report(['loaders', kind], `there is no files/${source}${didYouMean(source, site.files.blobs.keys())}`)
  const ranges = [...networkRanges(site.networks).values()]
  servers.forEach((server, index) => {
    const problem = serverProblem(server, ranges)
    if (problem !== undefined) report(['servers', String(index)], problem)
  })
  return problems
}

function serverProblem(server: string, ranges: readonly Range[]): string | undefined {
  if (server.includes(':')) return `${server} is not an IPv4 address, and nodes boot over IPv4`
  if (!ranges.some(({ range }) => range !== undefined && contains(range, server)))
    return `${server} is in none of the networks`
  const strangers = ranges.find(network => network.strangers !== undefined && contains(network.strangers, server))
  return strangers && `${server} is in the range for unknown machines (${strangers.unknown})`
}

/** A node name is a host name: it goes into DNS, certificates and Slurm. */
const HOST_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

function checkNodes(site: Site): Problem[] {
  const problems: Problem[] = []
  const ranges = networkRanges(site.networks)
  const claims = new Claims(site, problems)
  const servers = new Set(site.provision.servers)
  for (const node of site.nodes.values()) {
    const { value, problems: own } = site.resolve(node)
    for (const problem of own) problems.push(problem)
    const report = reporter(site, node, problems)
    if (!HOST_NAME.test(node.name)) report([], 'is not a host name (lower-case letters, digits and -)')
    checkBoot(site, value, report)
    checkFiles(site, node, value, report)
    checkInterfaces(ranges, node, value, report, claims)
    for (const [name, settings] of Object.entries((value['interfaces'] ?? {}) as Record<string, Plain>))
      if (servers.has(textAt(settings, 'address') ?? ''))
        report(['interfaces', name, 'address'], `${textAt(settings, 'address')} is the address of a boot server`)
    claims.address(node, textAt(value, 'bmc', 'address'), ['bmc', 'address'])
    claims.place(node, value)
  }
  return problems
}

type Report = (path: readonly string[], message: string) => void

function reporter(site: Site, node: SiteNode, problems: Problem[]): Report {
  return (path, message) => {
    const { layer, line, column } = originAt(site, node, path)
    problems.push({ file: layer.file, line, column, nodes: [node.name], path: path.join('.'), message })
  }
}

function checkBoot(site: Site, value: Plain, report: Report): void {
  const image = textAt(value, 'boot', 'image')
  const name = image?.split('@')[0]
  if (name !== undefined && !site.files.images.has(name)) {
    report(
      ['boot', 'image'],
      `there is no image ${name} (images/${name}/image.yaml)${didYouMean(name, site.files.images)}`,
    )
  }
}

function checkFiles(site: Site, node: SiteNode, value: Plain, report: Report): void {
  const { entries, problems } = site.filesOf(node)
  for (const { path, message } of problems)
    if (message !== NOTHING_SAID || !isSaidWrongly(site, node, path[0])) report(['files', ...path], message)
  const interfaces = (value['interfaces'] ?? {}) as Plain
  for (const entry of entries) {
    const name = entry.kind === 'file' ? entry.interface : undefined
    if (name !== undefined && !Object.hasOwn(interfaces, name))
      report(
        ['files', entry.path, 'interface'],
        `there is no interface ${name}${didYouMean(name, Object.keys(interfaces))}`,
      )
  }
}

/** What does not fit its schema is no value, and has been reported as such. */
function isSaidWrongly(site: Site, node: SiteNode, target: string): boolean {
  const file = valueAt(site.layersOf(node), ['files', target])
  return FILE_KINDS.some(kind => {
    const said = file === undefined ? undefined : valueAt(file, [kind])
    return said?.kind === 'leaf' && !(said.tree.kind === 'scalar' && [null, false].includes(said.tree.value as null))
  })
}

interface Range extends Network {
  readonly range: AddressRange | undefined
  readonly strangers: AddressRange | undefined
  readonly gateways: string | undefined
  readonly reserved: ReadonlySet<string>
}

function networkRanges(networks: ReadonlyMap<string, Network>): Map<string, Range> {
  return new Map(
    [...networks].map(([name, network]) => [
      name,
      {
        ...network,
        range: parseNetwork(network.cidr),
        reserved: reservedIn(parseNetwork(network.cidr)),
        strangers: network.unknown === undefined ? undefined : parseNetwork(network.unknown),
        gateways: network.gateway === undefined ? undefined : canonicalAddress(network.gateway),
      },
    ]),
  )
}

function checkInterfaces(
  networks: ReadonlyMap<string, Range>,
  node: SiteNode,
  value: Plain,
  report: Report,
  claims: Claims,
): void {
  for (const [name, settings] of Object.entries((value['interfaces'] ?? {}) as Record<string, Plain>)) {
    const path = ['interfaces', name]
    const networkName = textAt(settings, 'network') ?? name
    const network = networks.get(networkName)
    const address = textAt(settings, 'address')
    claims.mac(node, textAt(settings, 'mac'), [...path, 'mac'])
    if (network === undefined) {
      const key = settings['network'] === undefined ? path : [...path, 'network']
      report(key, `there is no network ${networkName}${didYouMean(networkName, networks.keys())}`)
    } else if (address !== undefined && isAddress(address)) {
      checkAddress(networkName, network, address, message => report([...path, 'address'], message))
      claims.address(node, address, [...path, 'address'])
    }
  }
}

function checkAddress(name: string, network: Range, address: string, report: (message: string) => void): void {
  if (network.range && !contains(network.range, address))
    report(`${address} is outside network ${name} (${network.cidr})`)
  else if (network.strangers && contains(network.strangers, address))
    report(`${address} is in the range for unknown machines (${network.unknown})`)
  else if (network.gateways === address) report(`${address} is the gateway of network ${name}`)
  else if (network.reserved.has(address))
    report(`${address} is no address for a node: it stands for network ${name} itself`)
}

/** The first and the last address of an IPv4 network mean the network and everybody in it. */
const reservedIn = (range: AddressRange | undefined): ReadonlySet<string> =>
  new Set(range?.kind === 'ipv4' && range.bits < 31 ? [range.base, lastAddress(range)] : [])

/** Who has claimed what: the second claim of the same thing is a problem, told with the place of the first. */
class Claims {
  readonly #site: Site
  readonly #problems: Problem[]
  readonly #claimed = new Map<string, { readonly node: SiteNode; readonly path: readonly string[] }>()

  constructor(site: Site, problems: Problem[]) {
    this.#site = site
    this.#problems = problems
  }

  address(node: SiteNode, address: string | undefined, path: readonly string[]): void {
    if (address !== undefined) this.#claim(node, path, `address ${address}`, `same address as`, address)
  }

  mac(node: SiteNode, mac: string | undefined, path: readonly string[]): void {
    if (mac !== undefined) this.#claim(node, path, `mac ${mac}`, 'same MAC as', mac)
  }

  place(node: SiteNode, value: Plain): void {
    const [sw, port] = [textAt(value, 'location', 'switch'), textAt(value, 'location', 'port')]
    if (sw !== undefined && port !== undefined) {
      this.#claim(node, ['location', 'port'], `place ${sw}\0${port}`, 'same place as', `${sw} port ${port}`)
    }
  }

  #claim(node: SiteNode, path: readonly string[], key: string, what: string, words: string): void {
    const first = this.#claimed.get(key)
    if (first === undefined) {
      this.#claimed.set(key, { node, path })
      return
    }
    const there = originAt(this.#site, first.node, first.path)
    const { layer, line, column } = originAt(this.#site, node, path)
    const message = `${what} ${first.node.name} (${words}, ${there.layer.file}:${there.line})`
    this.#problems.push({ file: layer.file, line, column, nodes: [node.name], path: path.join('.'), message })
  }
}

/** Where a value of a node was written; where the node itself was, when it was not. */
function originAt(site: Site, node: SiteNode, path: readonly string[]): Origin {
  const root: Value = site.layersOf(node)
  for (let length = path.length; length > 0; length--) {
    const origin = valueAt(root, path.slice(0, length))?.origin
    if (origin !== undefined) return origin
  }
  const entry = node.entries[0]
  if (entry === undefined) throw new Error(`${node.name} stands in no file`)
  return entry
}

function textAt(value: Plain, ...path: string[]): string | undefined {
  let found: unknown = value
  for (const key of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Plain)[key]
  }
  return typeof found === 'string' ? found : undefined
}
