import { describe, expect, it } from 'vitest'
import { SETTINGS, SiteSettings, settingsOf } from './settings.ts'
import { siteOf } from './testing.ts'

const KEY = 'ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='
const PROVISION = { port: 7180, tlsPort: 7181, dhcp: 'server', unknown: 'discover', dns: [], shell: false, loaders: {} }

describe('the settings of a site', () => {
  it('are what it says of itself, with what holds unless said', async () => {
    const settings = settingsOf(await siteOf())
    expect(settings).toEqual({
      site: 'demo',
      networks: { prov: { cidr: '10.77.0.0/16', gateway: '10.77.0.1', unknown: '10.77.255.0/24' } },
      provision: PROVISION,
      discovery: 'base',
      trust: { keys: {} },
      channels: {},
    })
    expect(SiteSettings.parse(JSON.parse(JSON.stringify(settings)))).toEqual(settings)
  })

  it('are everything it says', async () => {
    const settings = settingsOf(
      await siteOf({
        'files/ipxe/own.efi': 'x',
        'images/tiny/image.yaml': 'from: { debian: bookworm }\n',
        'site.yaml': `site: demo
networks:
  prov: { cidr: 10.77.0.0/16, dhcp: true, vlan: 12, domain: prov.cluster }
  ib: { cidr: 10.78.0.0/16, dhcp: false }
provision:
  servers: [10.77.0.1, 10.77.0.2]
  port: 8080
  dhcp: proxy
  unknown: ignore
  discovery: tiny
  dns: [192.0.2.53, "2001:DB8::53"]
  shell: true
  vlan: 12
  loaders: { efi64: ipxe/own.efi }
trust: { keys: { ci: { public: "${KEY}", until: 2027-12-31 }, old: { public: "${KEY}", revoked: 2026-01-01 } } }
channels: { stable: { tests: [root, vm], signed: [ci], after: { channel: staging, time: 2d }, size: 2 GB } }
`,
      }),
    )
    expect(settings).toEqual({
      site: 'demo',
      networks: {
        prov: { cidr: '10.77.0.0/16', dhcp: true, vlan: 12, domain: 'prov.cluster' },
        ib: { cidr: '10.78.0.0/16', dhcp: false },
      },
      provision: {
        servers: ['10.77.0.1', '10.77.0.2'],
        port: 8080,
        dhcp: 'proxy',
        unknown: 'ignore',
        discovery: 'tiny',
        dns: ['192.0.2.53', '2001:db8::53'],
        shell: true,
        tlsPort: 7181,
        vlan: 12,
        loaders: { efi64: 'ipxe/own.efi' },
      },
      discovery: 'tiny',
      trust: { keys: { ci: { public: KEY, until: '2027-12-31' }, old: { public: KEY, revoked: '2026-01-01' } } },
      channels: {
        stable: { tests: ['root', 'vm'], signed: ['ci'], after: { channel: 'staging', time: '2d' }, size: '2 GB' },
      },
    })
    expect(SiteSettings.parse(JSON.parse(JSON.stringify(settings)))).toEqual(settings)
  })

  it.for<[what: string, defaults: string, discovery: string | null]>([
    ['the image of the defaults', 'defaults: { boot: { image: base } }', 'base'],
    ['the one the site names', 'defaults: { boot: { image: base } }\nprovision: { discovery: other }', 'other'],
    ['none, where there is neither', '', null],
  ])('run the discovery system with %s', async ([, defaults, discovery]) => {
    const site = await siteOf({ 'site.yaml': `site: demo\n${defaults}\n` })
    expect(settingsOf(site).discovery).toBe(discovery)
  })

  it('without its channel: discovery needs any image of that name', async () => {
    const site = await siteOf({ 'site.yaml': 'site: demo\ndefaults: { boot: { image: base@stable } }\n' })
    expect(settingsOf(site).discovery).toBe('base')
  })

  it('have one place in the store', () => {
    expect(SETTINGS).toBe('site')
  })
})
