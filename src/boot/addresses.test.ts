import { describe, expect, it } from 'vitest'
import { dhcpDesired, ownAddresses, serverUrls } from './addresses.ts'
import { firstScript } from './ipxe.ts'
import { MAC, STRANGER, boots, indexOf, prov, viewOf } from './testing.ts'

const ANYWHERE = { provision: { servers: undefined } }

describe('the addresses on which a machine is a boot server', () => {
  const here = ['10.77.0.2', '192.0.2.7', '10.77.0.9']

  it('are those of the boot servers of the site that it has', () => {
    expect(ownAddresses(viewOf(), here)).toEqual(['10.77.0.2'])
    expect(ownAddresses(viewOf(), ['192.0.2.7'])).toEqual([])
  })

  it('are all it has in networks of the site, where that names no servers', () => {
    expect(ownAddresses(viewOf(ANYWHERE), here)).toEqual(['10.77.0.2', '10.77.0.9'])
    expect(ownAddresses(viewOf({ ...ANYWHERE, networks: {} }), here)).toEqual([])
  })

  it('are never those it has only for itself', () => {
    expect(ownAddresses(viewOf({ ...ANYWHERE, networks: { lo: { cidr: '127.0.0.0/8' } } }))).toEqual([])
  })
})

describe('where nodes find boot servers', () => {
  it.for<[what: string, urls: string[], expected: string[]]>([
    [
      'those of the site, in its order',
      serverUrls(viewOf(), ['10.77.0.2']),
      ['http://10.77.0.1:7180', 'http://10.77.0.2:7180'],
    ],
    [
      'the one that was asked first',
      serverUrls(viewOf(), ['10.77.0.2'], '10.77.0.2'),
      ['http://10.77.0.2:7180', 'http://10.77.0.1:7180'],
    ],
    [
      'none that the site does not name',
      serverUrls(viewOf(), [], '10.77.0.9'),
      ['http://10.77.0.1:7180', 'http://10.77.0.2:7180'],
    ],
    [
      'this one, where the site names none',
      serverUrls(viewOf(ANYWHERE), ['10.77.0.8', '10.77.0.9'], '10.77.0.9'),
      ['http://10.77.0.9:7180', 'http://10.77.0.8:7180'],
    ],
    [
      'the one that was asked, when nobody knows any',
      serverUrls(viewOf(ANYWHERE), [], '192.0.2.1'),
      ['http://192.0.2.1:7180'],
    ],
    ['itself, when nobody asked', serverUrls(viewOf(ANYWHERE), []), ['http://127.0.0.1:7180']],
    [
      'on the port of the site',
      serverUrls(viewOf({ provision: { port: 8080 } }), []),
      ['http://10.77.0.1:8080', 'http://10.77.0.2:8080'],
    ],
  ])('%s', ([, urls, expected]) => {
    expect(urls).toEqual(expected)
  })
})

describe('what the service for addresses and names is to do', () => {
  const OTHER = '52:54:00:00:00:02'

  it('is said whole', () => {
    const index = indexOf({ places: { [OTHER]: 'sw1 2' }, provision: { dns: ['192.0.2.53'] } })
    expect(dhcpDesired(index, ['10.77.0.1'])).toEqual({
      servers: ['10.77.0.1', '10.77.0.2'],
      own: ['10.77.0.1'],
      httpPort: 7180,
      domain: 'demo.cluster',
      networks: [{ name: 'prov', cidr: '10.77.0.0/16', gateway: '10.77.0.1', unknown: '10.77.255.0/24' }],
      hosts: [
        {
          name: 'n1',
          domain: 'demo.cluster',
          network: 'prov',
          macs: [MAC],
          address: '10.77.1.1',
          boots: true,
          primary: true,
        },
        {
          name: 'n2',
          domain: 'demo.cluster',
          network: 'prov',
          macs: [OTHER],
          address: '10.77.1.2',
          boots: true,
          primary: true,
        },
        {
          name: 'n3',
          domain: 'demo.cluster',
          network: 'prov',
          macs: [],
          address: '10.77.1.3',
          boots: true,
          primary: true,
        },
      ],
      forwarders: ['192.0.2.53'],
      discover: true,
      mode: 'server',
      autoexec: firstScript({ urls: ['http://10.77.0.1:7180', 'http://10.77.0.2:7180'] }),
      loaders: {},
    })
  })

  it('gives out addresses only where a boot server is, or where it is told to', () => {
    const networks = {
      prov: { cidr: '10.77.0.0/16' },
      ib: { cidr: '10.78.0.0/16' },
      bmc: { cidr: '10.79.0.0/16', dhcp: true, domain: 'bmc.cluster', vlan: 9 },
      off: { cidr: '10.77.0.0/24', dhcp: false },
    }
    expect(dhcpDesired(indexOf({ networks }), ['10.77.0.1']).networks).toEqual([
      { name: 'prov', cidr: '10.77.0.0/16' },
      { name: 'bmc', cidr: '10.79.0.0/16', domain: 'bmc.cluster', vlan: 9 },
    ])
  })

  it('names every address of a node, and one of them is what its name means', () => {
    const networks = { ib: { cidr: '10.78.0.0/16' }, prov: { cidr: '10.77.0.0/16' } }
    const ib = { name: 'ib0', network: 'ib', address: '10.78.1.1' }
    const bare = { name: 'spare', network: 'prov', mac: STRANGER }
    const node = boots('n1', {
      domain: undefined,
      interfaces: [ib, bare, prov('10.77.1.1', { mac: MAC })],
      from: 'disk',
    })
    expect(dhcpDesired(indexOf({ networks, nodes: [node] }), []).hosts).toEqual([
      { name: 'n1', domain: '', network: 'ib', macs: [], address: '10.78.1.1', boots: false, primary: false },
      { name: 'n1', domain: '', network: 'prov', macs: [MAC], address: '10.77.1.1', boots: false, primary: true },
    ])
  })

  it('has every machine that is a node, however many those are', () => {
    const places = { [OTHER]: 'sw1 2', [STRANGER]: 'sw1 2' }
    expect(dhcpDesired(indexOf({ places }), []).hosts[1]?.macs).toEqual([OTHER, STRANGER])
  })

  it.for([
    ['server', 'server'],
    ['proxy', 'proxy'],
  ] as const)('as %s it is %s', ([dhcp, mode]) => {
    expect(dhcpDesired(indexOf({ provision: { dhcp } }), []).mode).toBe(mode)
  })

  it('has no place for strangers where the site wants none', () => {
    expect(dhcpDesired(indexOf({ provision: { unknown: 'ignore' } }), []).discover).toBe(false)
  })

  it('lets loaders boot over the VLAN of the site', () => {
    const { autoexec } = dhcpDesired(indexOf({ provision: { vlan: 12, servers: ['10.77.0.1'] } }), [])
    expect(autoexec).toBe(firstScript({ urls: ['http://10.77.0.1:7180'] }, 12))
  })

  it('searches the domain that most nodes are in', () => {
    const domains = ['a.org', 'b.org', 'b.org', undefined].map((domain, index) => boots(`n${index}`, { domain }))
    expect(dhcpDesired(indexOf({ nodes: domains }), []).domain).toBe('b.org')
    expect(dhcpDesired(indexOf({ nodes: [] }), []).domain).toBe('')
  })
})
