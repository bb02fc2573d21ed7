import { expect, test } from 'vitest'
import { planNetworks, reverseZones } from './networks.ts'
import { sample } from './samples.ts'

const only = (change: Parameters<typeof sample>[0]) => {
  const [plan, ...others] = planNetworks(sample(change))
  expect(others).toEqual([])
  if (plan === undefined) throw new Error('there is no plan')
  return plan
}

test('clients of a network we are in are pointed at our address in it', () => {
  const networks = [{ name: 'other', cidr: '10.78.0.0/24', gateway: '10.78.0.254', domain: 'other.example' }]
  const { own, isLocal, netmask, gateway, domain } = only({ own: ['10.77.0.1', '10.78.0.1'], networks })
  expect({ own, isLocal, netmask, gateway, domain }).toEqual({
    own: '10.78.0.1',
    isLocal: true,
    netmask: '255.255.255.0',
    gateway: '10.78.0.254',
    domain: 'other.example',
  })
})

test('those of a network behind a relay at our first address, and nothing is advertised there', () => {
  const { own, isLocal, domain, advertised } = only({ networks: [{ name: 'far', cidr: '10.90.0.0/16' }] })
  expect({ own, isLocal, domain, advertised }).toEqual({
    own: '10.77.0.1',
    isLocal: false,
    domain: 'cluster.example',
    advertised: undefined,
  })
})

test('the prefix that is advertised comes from the network, our address in it from ours', () => {
  expect(only({}).advertised).toEqual({
    prefix: 'fd05:9bb8:a48e::',
    bits: 64,
    address: 'fd05:9bb8:a48e::a4d:1',
  })
  expect(only({ own: ['10.77.0.2'] }).advertised?.address).toBe('fd05:9bb8:a48e::a4d:2')
  expect(only({ advertise: false }).advertised).toBeUndefined()
})

test('names are looked up here first, then at the other boot servers; three is the most a resolver takes', () => {
  const servers = ['10.77.0.9', '10.77.0.1', '10.77.0.8', '10.77.0.7']
  expect(only({ servers }).dns).toEqual(['10.77.0.1', '10.77.0.9', '10.77.0.8'])
})

test.each([
  ['the whole part of the network', ['10.77.0.1'], '10.77.250.0/24', [['10.77.250.0', '10.77.250.255']]],
  ['without the first address of the network', ['10.77.0.1'], '10.77.0.0/24', [['10.77.0.1', '10.77.0.255']]],
  ['without the last one', ['10.77.0.1'], '10.77.255.0/24', [['10.77.255.0', '10.77.255.254']]],
  [
    'a half of it, beside another server',
    ['10.77.0.9', '10.77.0.1'],
    '10.77.250.0/24',
    [['10.77.250.128', '10.77.250.255']],
  ],
  [
    'all of it, where the other is elsewhere',
    ['10.90.0.9', '10.77.0.1'],
    '10.77.250.0/24',
    [['10.77.250.0', '10.77.250.255']],
  ],
  [
    'the only one there is, as the last of three servers',
    ['10.77.0.9', '10.77.0.8', '10.77.0.1'],
    '10.77.250.1/32',
    [['10.77.250.1', '10.77.250.1']],
  ],
] as const)('strangers get %s', (_, servers, unknown, expected) => {
  const networks = [{ name: 'prov', cidr: '10.77.0.0/16', unknown }]
  expect(only({ servers, networks }).strangers).toEqual(expected)
  expect(only({ servers, networks, discover: false }).strangers).toEqual([])
})

test('two servers never share an address for strangers', () => {
  const servers = ['10.77.0.1', '10.77.0.2', '10.77.0.3']
  const all = servers.flatMap(own => only({ servers, own: [own] }).strangers)
  expect(all).toEqual([
    ['10.77.250.0', '10.77.250.84'],
    ['10.77.250.85', '10.77.250.169'],
    ['10.77.250.170', '10.77.250.255'],
  ])
})

test('networks of IPv6 have no DHCP', () => {
  expect(planNetworks(sample({ networks: [{ name: 'six', cidr: 'fd00::/64' }] }))).toEqual([])
})

test.each([
  ['10.77.0.0/16', ['77.10.in-addr.arpa']],
  ['192.0.2.0/24', ['2.0.192.in-addr.arpa']],
  ['10.0.0.0/8', ['10.in-addr.arpa']],
  ['10.78.4.0/22', ['4.78.10.in-addr.arpa', '5.78.10.in-addr.arpa', '6.78.10.in-addr.arpa', '7.78.10.in-addr.arpa']],
])('the reverse names of %s are in %j', (cidr, zones) => {
  expect(reverseZones(only({ networks: [{ name: 'x', cidr }] }))).toEqual(zones)
})
