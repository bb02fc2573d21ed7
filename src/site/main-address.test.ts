import { expect, it } from 'vitest'
import { mainAddresses } from './main-address.ts'
import { siteOf, valueOf } from './testing.ts'

const INTERFACES =
  'n1: { interfaces: { a: { address: 10.1.0.9 }, b: { address: 10.2.0.9 }, two: { network: c, address: 10.3.0.9 } } }\n'

it.for<[what: string, networks: string, address: string]>([
  [
    'the first',
    'networks: { a: { cidr: 10.1.0.0/16 }, b: { cidr: 10.2.0.0/16 }, c: { cidr: 10.3.0.0/16 } }',
    '10.1.0.9',
  ],
  [
    'one in a network with addresses for strangers',
    'networks: { a: { cidr: 10.1.0.0/16 }, b: { cidr: 10.2.0.0/16, unknown: 10.2.9.0/24 }, c: { cidr: 10.3.0.0/16 } }',
    '10.2.0.9',
  ],
  [
    'one in a network with a boot server',
    'networks: { a: { cidr: 10.1.0.0/16 }, b: { cidr: 10.2.0.0/16, unknown: 10.2.9.0/24 }, c: { cidr: 10.3.0.0/16 } }\nprovision: { servers: [10.3.0.1] }',
    '10.3.0.9',
  ],
  [
    'one in a network that is served from elsewhere',
    'networks: { a: { cidr: 10.1.0.0/16, dhcp: false }, b: { cidr: 10.2.0.0/16, dhcp: true }, c: { cidr: 10.3.0.0/16 } }\nprovision: { servers: [10.1.0.1] }',
    '10.2.0.9',
  ],
])('the address of a node is %s', async ([, networks, address]) => {
  const site = await siteOf({
    'site.yaml': `site: demo\n${networks}\ndefaults: { boot: { image: base } }\n`,
    'nodes.yaml': INTERFACES,
  })
  expect(mainAddresses(site)(valueOf(site))).toBe(address)
})

it('a node without one has none', async () => {
  const site = await siteOf()
  expect(mainAddresses(site)(valueOf(site))).toBeUndefined()
})
