import { describe, expect, it } from 'vitest'
import { type Files, problemsOf, siteOf, valueOf } from './testing.ts'

const NETWORKS = 'networks:\n  prov: { cidr: 10.77.0.0/16, gateway: 10.77.0.1, unknown: 10.77.255.0/24 }\n'
const provision = (text: string): Files => ({ 'site.yaml': `site: demo\n${NETWORKS}provision: ${text}\n` })
const nodes = (text: string): Files => ({ 'nodes.yaml': text })

/** One mistake, and the one line that tells it. */
type Case = readonly [mistake: string, files: Files, line: string]

function each(cases: readonly Case[]): void {
  it.for(cases)('%s', async ([, files, line]) => {
    expect(await problemsOf(files)).toEqual([line])
  })
}

describe('how machines are booted', () => {
  it.for([
    '{}',
    '{ servers: [10.77.0.1] }',
    '{ servers: [10.77.0.1, 10.77.0.2], port: 1, tlsPort: 2, dhcp: none, unknown: ignore }',
    '{ port: 65535, dhcp: proxy, discovery: base, dns: ["2001:db8::53"], shell: true, vlan: 4094 }',
  ])('%s is right', async text => {
    expect(await problemsOf(provision(text))).toEqual([])
  })

  it('may take loaders from the files of the site', async () => {
    expect(await problemsOf({ ...provision('{ loaders: { bios: own.kpxe } }'), 'files/own.kpxe': 'x' })).toEqual([])
  })

  each([
    ['nothing at all', provision(''), 'site.yaml:4:12: provision: must be a map'],
    [
      'an unknown key',
      provision('{ sevrers: [] }'),
      'site.yaml:4:14: provision.sevrers: unknown key — did you mean servers?',
    ],
    ['no servers', provision('{ servers: [] }'), 'site.yaml:4:23: provision.servers: must not be empty'],
    ['a server by name', provision('{ servers: [head] }'), 'site.yaml:4:24: provision.servers.0: is not an IP address'],
    [
      'a server in no network',
      provision('{ servers: [10.77.0.1, 192.0.2.1] }'),
      'site.yaml:4:35: provision.servers.1: 192.0.2.1 is in none of the networks',
    ],
    [
      'a server with an address that nodes do not boot over',
      provision('{ servers: ["fd00::1"] }'),
      'site.yaml:4:24: provision.servers.0: fd00::1 is not an IPv4 address, and nodes boot over IPv4',
    ],
    [
      'a server with an address that strangers get',
      provision('{ servers: [10.77.255.1] }'),
      'site.yaml:4:24: provision.servers.0: 10.77.255.1 is in the range for unknown machines (10.77.255.0/24)',
    ],
    ['port 0', provision('{ port: 0 }'), 'site.yaml:4:20: provision.port: must be at least 1'],
    ['TLS port 0', provision('{ tlsPort: 0 }'), 'site.yaml:4:23: provision.tlsPort: must be at least 1'],
    [
      'the same port twice',
      provision('{ port: 80, tlsPort: 80 }'),
      'site.yaml:4:33: provision.tlsPort: 80 cannot be both: provision.port is plain, provision.tlsPort is TLS',
    ],
    [
      'the port that TLS has unless said',
      provision('{ port: 7181 }'),
      'site.yaml:4:20: provision.port: 7181 cannot be both: provision.port is plain, provision.tlsPort is TLS',
    ],
    ['port 65536', provision('{ port: 65536 }'), 'site.yaml:4:20: provision.port: must be at most 65535'],
    [
      'a kind of DHCP nobody knows',
      provision('{ dhcp: relay }'),
      'site.yaml:4:20: provision.dhcp: must be one of server, proxy, none',
    ],
    [
      'a way with strangers nobody knows',
      provision('{ unknown: welcome }'),
      'site.yaml:4:23: provision.unknown: must be one of discover, ignore',
    ],
    [
      'a discovery system that is not there',
      provision('{ discovery: bsae }'),
      'site.yaml:4:25: provision.discovery: there is no image bsae (images/bsae/image.yaml) — did you mean base?',
    ],
    ['a shell for some', provision('{ shell: maybe }'), 'site.yaml:4:21: provision.shell: must be true or false'],
    ['VLAN 4095', provision('{ vlan: 4095 }'), 'site.yaml:4:20: provision.vlan: must be at most 4094'],
    [
      'a loader that is not there',
      { ...provision('{ loaders: { efi64: on.efi } }'), 'files/own.efi': 'x' },
      'site.yaml:4:32: provision.loaders.efi64: there is no files/on.efi — did you mean own.efi?',
    ],
    [
      'a loader outside of the site',
      provision('{ loaders: { bios: ../../etc/passwd } }'),
      'site.yaml:4:31: provision.loaders.bios: is not a path inside files/',
    ],
    [
      'a node with the address of a server',
      { ...provision('{ servers: [10.77.0.9] }'), ...nodes('n1: { interfaces: { prov: { address: 10.77.0.9 } } }\n') },
      'nodes.yaml:1:29: n1.interfaces.prov.address: 10.77.0.9 is the address of a boot server',
    ],
  ])

  it('is as if nothing was said, while something is wrong', async () => {
    expect((await siteOf(provision('{ port: 0, shell: true }'))).provision).toMatchObject({ port: 7180, shell: false })
  })
})

const network = (dhcp: string): Files => ({
  'site.yaml': `site: demo\nnetworks: { prov: { cidr: 10.77.0.0/16, dhcp: ${dhcp} } }\n`,
})

describe('whether we give out addresses in a network', () => {
  it.for(['true', 'false'])('may be %s', async dhcp => {
    const site = await siteOf(network(dhcp))
    expect(await problemsOf(network(dhcp))).toEqual([])
    expect(site.networks.get('prov')?.dhcp).toBe(dhcp === 'true')
  })

  it('is nothing else', async () => {
    expect(await problemsOf(network('yes'))).toEqual(['site.yaml:2:47: networks.prov.dhcp: must be true or false'])
  })
})

const boot = async (text: string): Promise<unknown> => valueOf(await siteOf(nodes(`n1: { boot: ${text} }\n`)))['boot']

describe('what a node boots', () => {
  it.for<[text: string, value: object]>([
    ['{ from: disk }', { from: 'disk' }],
    ['{ from: network }', { from: 'network' }],
    ['{ form: cpio }', { form: 'cpio' }],
    ['{ form: squashfs }', { form: 'squashfs' }],
    ['{ overlay: 50% }', { overlay: '50%' }],
    ['{ overlay: 100% }', { overlay: '100%' }],
    ['{ overlay: 2 GB }', { overlay: '2000000000' }],
    ['{ overlay: 2GiB }', { overlay: '2147483648' }],
    ['{ overlay: 1048576 }', { overlay: '1048576' }],
    ['{ overlay: "{{ 10 + 20 }}%" }', { overlay: '30%' }],
    ['{ overlay: "{{ 2 * 1024 }} MiB" }', { overlay: '2147483648' }],
    ["{ form: \"{{ 'cpio' if index == 1 else 'squashfs' }}\" }", { form: 'cpio' }],
  ])('%s', async ([text, value]) => {
    expect(await problemsOf(nodes(`n1: { boot: ${text} }\n`))).toEqual([])
    expect(await boot(text)).toEqual({ image: 'base', ...value })
  })

  each([
    [
      'from nowhere',
      nodes('n1: { boot: { from: usb } }\n'),
      'nodes.yaml:1:21: n1.boot.from: must be one of network, disk',
    ],
    [
      'of no form',
      nodes('n1: { boot: { form: erofs } }\n'),
      'nodes.yaml:1:21: n1.boot.form: must be one of squashfs, cpio',
    ],
    ...['0%', '101%', '1048575', 'half', '-1', '"1.5"', '1 kB', '""'].map((overlay): Case => [
      `with an overlay of ${overlay}`,
      nodes(`n1: { boot: { overlay: ${overlay} } }\n`),
      'nodes.yaml:1:24: n1.boot.overlay: is neither a share of memory such as 50% nor a size such as 2 GB',
    ]),
    [
      'with an overlay that is no size at all',
      nodes('n1: { boot: { overlay: [1] } }\n'),
      'nodes.yaml:1:24: n1.boot.overlay: must be text',
    ],
    [
      'with an overlay that a template makes wrong',
      nodes('n1: { boot: { overlay: "{{ 100 + 20 }}%" } }\n'),
      'nodes.yaml:1:15: n1.boot.overlay: "120%" is neither a share of memory such as 50% nor a size such as 2 GB',
    ],
  ])
})
