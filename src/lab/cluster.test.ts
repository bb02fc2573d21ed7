import { describe, expect, it } from 'vitest'
import { type Files, failureOf, siteOf } from '../site/testing.ts'
import { type Cast, type Counts, castOf } from './cluster.ts'
import { labMac } from './simulated/simulate.ts'

const NODES = `n[1-4]:
  location: { switch: sw1, port: "{{ index }}" }
  interfaces: { prov: { address: "10.77.1.{{ index }}" } }
`
const cast = async (counts: Partial<Counts>, files: Files = {}): Promise<Cast> =>
  castOf(await siteOf({ 'nodes.yaml': NODES, ...files }), { machines: 0, simulated: 0, isWired: true, ...counts })
const names = (nodes: Cast['machines']): string[] => nodes.map(({ name }) => name)

describe('the part of a site that a lab plays', () => {
  it('is its first nodes: machines, and then those that are simulated', async () => {
    expect(await cast({ machines: 1, simulated: 2 })).toEqual({
      machines: [{ name: 'n1', mac: labMac('n1'), image: 'base' }],
      simulated: [
        { name: 'n2', mac: labMac('n2'), image: 'base' },
        { name: 'n3', mac: labMac('n3'), image: 'base' },
      ],
      images: ['base'],
      addresses: [{ cidr: '10.77.0.1/16' }],
      places: [
        { mac: labMac('n1'), switch: 'sw1', port: '1' },
        { mac: labMac('n2'), switch: 'sw1', port: '2' },
        { mac: labMac('n3'), switch: 'sw1', port: '3' },
      ],
    })
  })

  it('keeps the MACs of the site, which need no place', async () => {
    const mac = '52:54:00:12:34:56'
    const found = await cast(
      { machines: 1 },
      { 'nodes.yaml': `n1: { interfaces: { prov: { address: 10.77.1.1, mac: "${mac}" } } }\n` },
    )
    expect(found.machines).toEqual([{ name: 'n1', mac, image: 'base' }])
    expect(found.places).toEqual([])
  })

  it.for<[what: string, more: string]>([
    ['boot from their disk', 'boot: { from: disk }'],
    ['have another kind of root', 'boot: { root: disk }'],
    ['have no address', 'interfaces: { prov: { address: null } }'],
    ['have neither MAC nor place', 'location: { port: null }'],
  ])('leaves out nodes that %s', async ([, more]) => {
    const found = await cast({ machines: 2 }, { 'nodes.yaml': `${NODES}n1: { ${more} }\nn3: { ${more} }\n` })
    expect(names(found.machines)).toEqual(['n2', 'n4'])
  })

  it('leaves out nodes without an image', async () => {
    const site = 'site: demo\nnetworks: { prov: { cidr: 10.77.0.0/16, unknown: 10.77.255.0/24 } }\n'
    const found = await cast(
      { machines: 1 },
      { 'site.yaml': site, 'nodes.yaml': `${NODES}n2: { boot: { image: base } }\n` },
    )
    expect(names(found.machines)).toEqual(['n2'])
  })

  it('needs every image once, without its channel, and that of the discovery system', async () => {
    const nodes = `${NODES}n1: { boot: { image: other@stable } }\nn2: { boot: { image: other } }\nn3: { boot: { image: other } }\n`
    const files = { 'nodes.yaml': nodes, 'images/other/image.yaml': 'from: { debian: bookworm }\n' }
    expect((await cast({ machines: 2 }, files)).images).toEqual(['other', 'base'])
    expect((await cast({ simulated: 2, isWired: false }, files)).images).toEqual(['other'])
  })

  it('may be nobody', async () => {
    expect(await failureOf(() => cast({}))).toBe('USAGE: the site does not say where its boot servers are')
    const site = 'site: demo\nnetworks: { prov: { cidr: 10.77.0.0/16 } }\nprovision: { servers: [10.77.0.9] }\n'
    expect(await cast({ isWired: false }, { 'site.yaml': site })).toEqual({
      machines: [],
      simulated: [],
      images: [],
      addresses: [{ cidr: '10.77.0.9/16' }],
      places: [],
    })
  })

  it('cannot be more than the site has', async () => {
    const failure = cast({ machines: 3, simulated: 2 })
    await expect(failure).rejects.toMatchObject({
      code: 'USAGE',
      message: 'the site has 4 nodes that boot an image from the network, not 5',
      hint: 'ask for fewer, or add some: they need boot.image, an address, and a MAC or a place (switch and port)',
    })
  })
})

const addresses = async (networks: string, more = ''): Promise<string[]> => {
  const site = `site: demo\nnetworks:\n${networks}\ndefaults: { boot: { image: base } }\n${more}\n`
  return (await cast({ machines: 1 }, { 'site.yaml': site })).addresses.map(({ cidr }) => cidr)
}

describe('the addresses of the head', () => {
  it.for<[what: string, networks: string, more: string, expected: string[]]>([
    [
      'are those of the boot servers, with the length of their network',
      '  prov: { cidr: 10.77.0.0/16 }\n  other: { cidr: 10.78.0.0/24 }',
      'provision: { servers: [10.77.0.9, 10.78.0.9, 10.77.0.8] }',
      ['10.77.0.9/16', '10.77.0.8/16', '10.78.0.9/24'],
    ],
    [
      'are those of the gateway, where the site names no servers',
      '  prov: { cidr: 10.77.0.0/16, gateway: 10.77.3.3, unknown: 10.77.255.0/24 }',
      '',
      ['10.77.3.3/16'],
    ],
    [
      'are the first of the network, where it has no gateway',
      '  prov: { cidr: 10.77.0.0/16, unknown: 10.77.255.0/24 }',
      '',
      ['10.77.0.1/16'],
    ],
    [
      'are only in networks that the nodes boot from',
      '  prov: { cidr: 10.77.0.0/16, unknown: 10.77.255.0/24 }\n  other: { cidr: 10.78.0.0/24, unknown: 10.78.0.128/25 }',
      '',
      ['10.77.0.1/16'],
    ],
  ])('%s', async ([, networks, more, expected]) => {
    expect(await addresses(networks, more)).toEqual(expected)
  })

  it('must be somewhere', async () => {
    await expect(addresses('  prov: { cidr: 10.77.0.0/16 }')).rejects.toMatchObject({
      code: 'USAGE',
      message: 'the site does not say where its boot servers are',
      hint: 'add to site.yaml: provision: { servers: [ADDRESS] }, an address in the network nodes boot from',
    })
  })
})
