import { symlink, truncate, writeFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { exec } from '../lib/exec.ts'
import { checkSite } from './check.ts'
import { gitSource } from './git-source.ts'
import { openRepository } from './git.ts'
import { initSite } from './init.ts'
import { openSite } from './site.ts'
import { type SiteSource, directorySource } from './source.ts'
import {
  type Files,
  SMALL,
  commitAll,
  directoryOf,
  failureOf,
  format,
  git,
  isolateGit,
  problemsOf,
  temporaryDir,
} from './testing.ts'

beforeAll(isolateGit)

const nodes = (text: string): Files => ({ 'nodes.yaml': text })
const site = (text: string): Files => ({ 'site.yaml': text })
/** A group that n[1-3] are in. */
const group = (text: string): Files => ({ 'groups/g.yaml': text, 'nodes.yaml': 'n[1-3]: { groups: [g] }\n' })
const networks = (text: string): Files => site(`site: demo\nnetworks:\n  ${text}\n`)

const check = async (source: SiteSource): Promise<string[]> => format(checkSite(await openSite(source)))
const checkDir = async (dir: string): Promise<string[]> => check(await directorySource(dir))

/** One mistake, and the one line that tells it. */
type Case = readonly [mistake: string, files: Files, line: string]

function each(cases: readonly Case[]): void {
  test.each(cases)('%s', async (_, files, line) => {
    expect(await problemsOf(files)).toEqual([line])
  })
}

test('the small site the others are made of is right', async () => {
  expect(await problemsOf({})).toEqual([])
})

describe('a file that is no YAML', () => {
  each([
    [
      'a bracket that is never closed',
      site('site: demo\nnetworks: { prov: { cidr: 10.0.0.0/8 }\ndomain: x\n'),
      'site.yaml:3:1: Flow map in block collection must be sufficiently indented and end with a }',
    ],
    [
      'a tab as indentation',
      nodes('n1:\n\tboot: { root: ram }\n'),
      'nodes.yaml:2:1: Tabs are not allowed as indentation',
    ],
    ['a node twice', nodes('n1: {}\nn2: {}\nn1: {}\n'), 'nodes.yaml:3:1: the key "n1" is already on line 1'],
    [
      'a key twice, deep inside',
      group('boot:\n  root: ram\n  root: disk\n'),
      'groups/g.yaml:3:3: the key "root" is already on line 2',
    ],
    [
      'an anchor',
      nodes('n1: &a { boot: { root: ram } }\n'),
      'nodes.yaml:1:8: anchors and aliases are not used in site files; put shared values into a group',
    ],
    [
      'an alias',
      nodes('n1: *a\n'),
      'nodes.yaml:1:5: anchors and aliases are not used in site files; put shared values into a group',
    ],
    [
      'a merge key',
      nodes('n1: { <<: { domain: x } }\n'),
      'nodes.yaml:1:7: merge keys (<<) are not used in site files; put shared values into a group',
    ],
    [
      'two documents',
      nodes('n1: {}\n---\nn2: {}\n'),
      'nodes.yaml:2:1: a file holds one YAML document; put what follows into a file of its own',
    ],
    [
      'a tag nobody knows',
      nodes('n1: { domain: !vault x }\n'),
      'nodes.yaml:1:22: the tag !vault is not known; only !age is',
    ],
    ['a list at the top', nodes('- n1\n- n2\n'), 'nodes.yaml:1:1: must be a map of keys and values'],
    ['text at the top', group('compute\n'), 'groups/g.yaml:1:1: must be a map of keys and values'],
    [
      'not UTF-8',
      { 'nodes.yaml': Buffer.from('n1: { domain: caf\xe9 }\n', 'latin1') },
      'nodes.yaml:1:1: is not text (not UTF-8)',
    ],
    [
      'UTF-16',
      { 'groups/g.yaml': Buffer.from('\ufeffdomain: x\n', 'utf16le') },
      'groups/g.yaml:1:1: is not text (not UTF-8)',
    ],
    [
      'a NUL byte, told where it is',
      nodes('n1: {}\nn2: { dom\0ain: x }\n'),
      'nodes.yaml:2:10: is not text (it holds a NUL byte)',
    ],
    [
      'a file that is not read',
      { 'groups/g.yml': 'domain: x\n' },
      'groups/g.yml:1:1: is not read: its name must end in .yaml',
    ],
    [
      'a cluster that is not read',
      { 'clusters/c.yml': '' },
      'clusters/c.yml:1:1: is not read: its name must end in .yaml',
    ],
    ['nodes that are not read', { 'nodes.yml': 'n4:\n' }, 'nodes.yml:1:1: is not read: its name must end in .yaml'],
  ])
})

describe('unknown keys, with what was probably meant', () => {
  each([
    [
      'at the top of a file',
      site('site: demo\ndomian: x\n'),
      'site.yaml:2:1: domian: unknown key — did you mean domain?',
    ],
    [
      'on the second level',
      group('boot: { imgae: base }\n'),
      'groups/g.yaml:1:9: boot.imgae: unknown key — did you mean image?',
    ],
    [
      'on the fourth level',
      nodes('n1:\n  interfaces:\n    prov: { adress: 10.77.1.1 }\n'),
      'nodes.yaml:3:13: n1.interfaces.prov.adress: unknown key — did you mean address?',
    ],
    [
      'where a value may be text or a map',
      { ...group('files:\n  /etc/x: { source: a, mdoe: 0600 }\n'), 'files/a': '' },
      'groups/g.yaml:2:24: files./etc/x.mdoe: unknown key — did you mean mode?',
    ],
    [
      'in the defaults',
      site('site: demo\ndefaults:\n  boto: {}\n'),
      'site.yaml:3:3: defaults.boto: unknown key — did you mean boot?',
    ],
    [
      'in a network',
      networks('prov: { cidr: 10.0.0.0/8, gatway: 10.0.0.1 }'),
      'site.yaml:3:29: networks.prov.gatway: unknown key — did you mean gateway?',
    ],
    ['that resembles none', nodes('n1: { zebra: 1 }\n'), 'nodes.yaml:1:7: n1.zebra: unknown key'],
    [
      'that stands elsewhere: groups in defaults',
      site('site: demo\ndefaults: { groups: [g] }\n'),
      'site.yaml:2:13: defaults.groups: unknown key',
    ],
    [
      'that appends',
      group('boot: { agrs+: [quiet] }\n'),
      'groups/g.yaml:1:9: boot.agrs: unknown key — did you mean args?',
    ],
  ])
})

describe('values that do not fit', () => {
  each([
    ['no map', group('boot: 5\n'), 'groups/g.yaml:1:7: boot: must be a map'],
    ['no list', group('boot: { args: quiet }\n'), 'groups/g.yaml:1:15: boot.args: must be a list'],
    ['a number for text', nodes('n1: { domain: 5 }\n'), 'nodes.yaml:1:15: n1.domain: must be text: write it in quotes'],
    ['a list for text', nodes('n1: { location: { port: [1] } }\n'), 'nodes.yaml:1:25: n1.location.port: must be text'],
    ['text for a node', nodes('n1: compute\n'), 'nodes.yaml:1:5: n1: must be a map'],
    [
      'a number in a list of text',
      group('boot: { args: [quiet, 5] }\n'),
      'groups/g.yaml:1:23: boot.args.1: must be text: write it in quotes',
    ],
    [
      'nothing where something must be',
      group('boot: { args: [""] }\n'),
      'groups/g.yaml:1:16: boot.args.0: must not be empty',
    ],
    [
      'text for a number',
      group('interfaces: { prov: { vlan: five } }\n'),
      'groups/g.yaml:1:29: interfaces.prov.vlan: must be a number',
    ],
    [
      'a fraction',
      group('interfaces: { prov: { vlan: 1.5 } }\n'),
      'groups/g.yaml:1:29: interfaces.prov.vlan: must be a whole number',
    ],
    [
      'too big',
      group('interfaces: { prov: { vlan: 5000 } }\n'),
      'groups/g.yaml:1:29: interfaces.prov.vlan: must be at most 4094',
    ],
    [
      'too small',
      group('interfaces: { prov: { vlan: 0 } }\n'),
      'groups/g.yaml:1:29: interfaces.prov.vlan: must be at least 1',
    ],
    [
      'none of the choices',
      group('boot: { root: rma }\n'),
      'groups/g.yaml:1:15: boot.root: must be one of ram, projected, disk',
    ],
    [
      'none of the choices, no text',
      group('boot: { root: 5 }\n'),
      'groups/g.yaml:1:15: boot.root: must be one of ram, projected, disk',
    ],
    ['no domain', site('site: demo\ndomain: demo_cluster\n'), 'site.yaml:2:9: domain: is not a domain name'],
    ['no name', site('site: Demo Site\n'), 'site.yaml:1:7: site: is not a name (lower-case letters, digits, - and _)'],
    [
      'a bad MAC',
      nodes('n1:\n  interfaces:\n    prov: { mac: "52:54:00:00:00" }\n'),
      'nodes.yaml:3:18: n1.interfaces.prov.mac: is not a MAC address',
    ],
    [
      'a MAC with dashes',
      nodes('n1: { interfaces: { prov: { mac: 52-54-00-00-00-01 } } }\n'),
      'nodes.yaml:1:34: n1.interfaces.prov.mac: is not a MAC address',
    ],
    [
      'a bad address',
      nodes('n1: { interfaces: { prov: { address: 10.77.1.300 } } }\n'),
      'nodes.yaml:1:38: n1.interfaces.prov.address: is not an IP address',
    ],
    [
      'an address with zeros in front',
      group('bmc: { address: 10.77.001.002 }\n'),
      'groups/g.yaml:1:17: bmc.address: is not an IP address',
    ],
    [
      'an address that is a number',
      nodes('n1: { bmc: { address: 10.77 } }\n'),
      'nodes.yaml:1:23: n1.bmc.address: must be text: write it in quotes',
    ],
    [
      'a bad image',
      nodes('n1: { boot: { image: "Base:1" } }\n'),
      'nodes.yaml:1:22: n1.boot.image: is not an image such as compute, compute@stable or compute@sha256:…',
    ],
    [
      'a bad duration',
      group('update: { healthy: 3 min }\n'),
      'groups/g.yaml:1:20: update.healthy: is not a duration such as 30s, 5m or 1h',
    ],
    [
      'a duration without a unit',
      group('update: { healthy: 3 }\n'),
      'groups/g.yaml:1:20: update.healthy: must be text: write it in quotes',
    ],
    [
      'more than all',
      group('update: { maxUnavailable: 200% }\n'),
      'groups/g.yaml:1:27: update.maxUnavailable: is not a number of nodes or a percentage',
    ],
    [
      'a mode that is no mode',
      { ...group('files: { /a: { source: a, mode: rwx } }\n'), 'files/a': '' },
      'groups/g.yaml:1:33: files./a.mode: is not a file mode such as "0644"',
    ],
    [
      'a mode with an 8',
      { ...group('files: { /a: { source: a, mode: "0688" } }\n'), 'files/a': '' },
      'groups/g.yaml:1:33: files./a.mode: is not a file mode such as "0644"',
    ],
    [
      'a target that is not absolute',
      { ...group('files: { etc/x: a }\n'), 'files/a': '' },
      'groups/g.yaml:1:10: files.etc/x: is not an absolute path',
    ],
    [
      'a source outside files/',
      { ...group('files: { /etc/x: ../site.yaml }\n') },
      'groups/g.yaml:1:18: files./etc/x: is not a path inside files/',
    ],
    [
      'a file without a source',
      group('files: { /etc/x: { mode: "0600" } }\n'),
      'groups/g.yaml:1:10: n[1-3].files./etc/x: says neither source nor ready nor link nor absent: true',
    ],
    [
      'a file that is not to be absent, and nothing else',
      group('files: { /etc/x: { absent: false } }\n'),
      'groups/g.yaml:1:10: n[1-3].files./etc/x: says neither source nor ready nor link nor absent: true',
    ],
    [
      'a ready-made file that there is not',
      group('files: { /etc/x: { ready: hsots } }\n'),
      'groups/g.yaml:1:27: files./etc/x.ready: must be one of hostname, hosts, resolv.conf, networkd, networkmanager, ifupdown, authorized_keys, ssh_host_key, ssh_host_key.pub, ssh_known_hosts, chrony, rsyslog, munge.key, cloud-init-meta-data, cloud-init-user-data, cloud-init-network-config',
    ],
    [
      'a ready-made file of no interface',
      group('files: { /etc/x: { ready: networkd } }\n'),
      'groups/g.yaml:1:10: n[1-3].files./etc/x: interface is missing: ready networkd is about one of them',
    ],
    [
      'a ready-made file of an interface that there is not',
      group('interfaces: { prov: {} }\nfiles: { /etc/x: { ready: networkd, interface: porv } }\n'),
      'groups/g.yaml:2:37: n[1-3].files./etc/x.interface: there is no interface porv — did you mean prov?',
    ],
    [
      'an interface for what is about none',
      group('interfaces: { prov: {} }\nfiles: { /etc/x: { ready: hosts, interface: prov } }\n'),
      'groups/g.yaml:2:34: n[1-3].files./etc/x.interface: is not for ready hosts',
    ],
    [
      'a file that is a link too',
      { ...group('files: { /etc/x: { source: a, link: /etc/y } }\n'), 'files/a': '' },
      'groups/g.yaml:1:31: n[1-3].files./etc/x.link: does not go with source',
    ],
    [
      'a mode of a link',
      group('files: { /etc/x: { link: /etc/y, mode: "0600" } }\n'),
      'groups/g.yaml:1:34: n[1-3].files./etc/x.mode: says nothing about a link',
    ],
    [
      'an owner of nothing',
      group('files: { /etc/x: { absent: true, owner: munge } }\n'),
      'groups/g.yaml:1:34: n[1-3].files./etc/x.owner: says nothing about what is absent',
    ],
    [
      'a mode for the folders of a file',
      { ...group('files: { /etc/x: { source: a, dirMode: "0700" } }\n'), 'files/a': '' },
      'groups/g.yaml:1:31: n[1-3].files./etc/x.dirMode: is for folders, and files/a is a file',
    ],
    [
      'a handler for a file that never changes while the node runs',
      { ...group('files: { /etc/x: { source: a, then: systemctl reload x } }\n'), 'files/a': '' },
      'groups/g.yaml:1:31: n[1-3].files./etc/x.then: follows a change on a running node: it needs when: live',
    ],
    [
      'a handler of two lines',
      { ...group('files: { /etc/x: { source: a, when: live, then: "a\\nb" } }\n'), 'files/a': '' },
      'groups/g.yaml:1:49: files./etc/x.then: is not one line',
    ],
    [
      'another time',
      { ...group('files: { /etc/x: { source: a, when: later } }\n'), 'files/a': '' },
      'groups/g.yaml:1:37: files./etc/x.when: must be one of boot, live',
    ],
    [
      'a path that is not written as short as it can be',
      { ...group('files: { /etc//x: a }\n'), 'files/a': '' },
      'groups/g.yaml:1:10: files./etc//x: is no path for a file on nodes: it has // or a control character in it, or is longer than 1024 bytes',
    ],
    [
      'an owner that no system has',
      { ...group('files: { /etc/x: { source: a, owner: "a b" } }\n'), 'files/a': '' },
      'groups/g.yaml:1:38: files./etc/x.owner: is not a user or group: a name, or a number',
    ],
    [
      'a file below a file',
      { ...group('files: { /etc/x: a, /etc/x/y/z: a }\n'), 'files/a': '' },
      'groups/g.yaml:1:21: n[1-3].files./etc/x/y/z: /etc/x/y/z cannot be below /etc/x, which is a file',
    ],
    [
      'a file of a tree below what is to be absent',
      { ...group('files: { /etc/x: { source: sub }, /etc/x/y: { absent: true } }\n'), 'files/sub/y/z': '' },
      'groups/g.yaml:1:10: n[1-3].files./etc/x: /etc/x/y/z cannot be below /etc/x/y, which is to be absent',
    ],
    [
      'a tree in which two files are one',
      { ...group('files: { /etc/x: { source: sub } }\n'), 'files/sub/a': '', 'files/sub/a.j2': '' },
      'groups/g.yaml:1:10: n[1-3].files./etc/x: files/sub/a and files/sub/a.j2 both become /etc/x/a',
    ],
    [
      'a bad recipient',
      site('site: demo\nsecrets: { recipients: [age1x] }\n'),
      'site.yaml:2:25: secrets.recipients.0: is not an age recipient (age1…)',
    ],
    [
      'no recipient',
      site('site: demo\nsecrets: { recipients: [] }\n'),
      'site.yaml:2:24: secrets.recipients: must not be empty',
    ],
    [
      'a bad name of a group',
      nodes('n1: { groups: [GPU] }\n'),
      'nodes.yaml:1:16: n1.groups.0: is not a name (lower-case letters, digits, - and _)',
    ],
  ])

  test('every mistake is told, also several in one entry of nodes.yaml', async () => {
    const text = 'n1:\n  domain: 5\n  boot: { root: rma, imgae: base }\n  interfaces: { prov: { vlan: 5000 } }\n'
    expect(await problemsOf(nodes(text))).toEqual([
      'nodes.yaml:2:11: n1.domain: must be text: write it in quotes',
      'nodes.yaml:3:17: n1.boot.root: must be one of ram, projected, disk',
      'nodes.yaml:3:22: n1.boot.imgae: unknown key — did you mean image?',
      'nodes.yaml:4:31: n1.interfaces.prov.vlan: must be at most 4094',
    ])
  })

  test.each<[string, Files]>([
    ['a value', group('boot: { image: null, args: null }\n')],
    ['a map', group('interfaces: null\nboot: ~\n')],
    ['a key with nothing behind it', group('boot:\nfiles:\n')],
    ['one of several', { ...group('files: { /etc/motd: null }\n') }],
    ['in an entry', nodes('n1:\n  groups:\n  domain: null\n')],
    ['defaults and networks yet to be written', site('site: demo\ndomain: x\nnetworks:\ndefaults:\n')],
  ])('null takes away and is no mistake: %s', async (_, files) => {
    expect(await problemsOf(files)).toEqual([])
  })

  test('a higher layer may change the mode of a file and keep its source', async () => {
    const files = {
      ...group('files: { /etc/x: { source: a, mode: "0600" } }\n'),
      'files/a': '',
      'nodes.yaml': 'n1: { groups: [g], files: { /etc/x: { mode: "0400" } } }\n',
    }
    expect(await problemsOf(files)).toEqual([])
  })
})

describe('appending', () => {
  each([
    [
      'to a list, no list',
      group('boot: { args+: quiet }\n'),
      'groups/g.yaml:1:9: boot.args: only a list can be appended to: write a list after +:',
    ],
    [
      'to a scalar',
      group('boot: { root+: ram }\n'),
      'groups/g.yaml:1:9: boot.root: only a list can be appended to: write a list after +:',
    ],
    [
      'to a map',
      group('boot+: { root: ram }\n'),
      'groups/g.yaml:1:1: boot: only a list can be appended to: write a list after +:',
    ],
    [
      'and replacing at once',
      group('boot: { args: [a], args+: [b] }\n'),
      'groups/g.yaml:1:20: boot.args: stands here twice, as args and as args+',
    ],
    [
      'a list to a scalar',
      group('boot: { root+: [ram] }\n'),
      'groups/g.yaml:1:16: boot.root: must be one of ram, projected, disk',
    ],
  ])
})

describe('networks', () => {
  each([
    [
      'no network',
      networks('prov: { cidr: 10.77.0.0/33 }'),
      'site.yaml:3:17: networks.prov.cidr: is not a network such as 10.77.0.0/16',
    ],
    [
      'a network without its size',
      networks('prov: { cidr: 10.77.0.0 }'),
      'site.yaml:3:17: networks.prov.cidr: is not a network such as 10.77.0.0/16',
    ],
    [
      'a network without its addresses',
      networks('prov: { gateway: 10.77.0.1 }'),
      'site.yaml:3:3: networks.prov.cidr: is missing',
    ],
    [
      'a gateway that is no address',
      networks('prov: { cidr: 10.77.0.0/16, gateway: gw }'),
      'site.yaml:3:40: networks.prov.gateway: is not an IP address',
    ],
    [
      'a gateway outside',
      networks('prov: { cidr: 10.77.0.0/16, gateway: 10.78.0.1 }'),
      'site.yaml:3:40: networks.prov.gateway: 10.78.0.1 is outside 10.77.0.0/16',
    ],
    [
      'the range for strangers outside',
      networks('prov: { cidr: 10.77.0.0/16, unknown: 10.78.0.0/24 }'),
      'site.yaml:3:40: networks.prov.unknown: 10.78.0.0/24 is outside 10.77.0.0/16',
    ],
    [
      'the range for strangers reaching outside',
      networks('prov: { cidr: 10.77.0.0/24, unknown: 10.77.0.0/16 }'),
      'site.yaml:3:40: networks.prov.unknown: 10.77.0.0/16 is outside 10.77.0.0/24',
    ],
    [
      'a name that is none',
      networks('Prov Net: { cidr: 10.77.0.0/16 }'),
      'site.yaml:3:3: networks.Prov Net: is not a name (lower-case letters, digits, - and _)',
    ],
  ])
})

describe('addresses, MACs and places', () => {
  const prov = (settings: string): Files => nodes(`n1:\n  interfaces: { prov: { ${settings} } }\n`)
  each([
    [
      'outside its network',
      prov('address: 10.99.0.1'),
      'nodes.yaml:2:25: n1.interfaces.prov.address: 10.99.0.1 is outside network prov (10.77.0.0/16)',
    ],
    [
      'of the other kind',
      prov('address: "fd00::1"'),
      'nodes.yaml:2:25: n1.interfaces.prov.address: fd00::1 is outside network prov (10.77.0.0/16)',
    ],
    [
      'in the range for strangers',
      prov('address: 10.77.255.7'),
      'nodes.yaml:2:25: n1.interfaces.prov.address: 10.77.255.7 is in the range for unknown machines (10.77.255.0/24)',
    ],
    [
      'that of the gateway',
      prov('address: 10.77.0.1'),
      'nodes.yaml:2:25: n1.interfaces.prov.address: 10.77.0.1 is the gateway of network prov',
    ],
    [
      'on a network of another name',
      nodes('n1: { interfaces: { eth0: { network: prov, address: 10.99.0.1 } } }\n'),
      'nodes.yaml:1:44: n1.interfaces.eth0.address: 10.99.0.1 is outside network prov (10.77.0.0/16)',
    ],
    [
      'the same twice',
      nodes(
        'n1: { interfaces: { prov: { address: 10.77.1.1 } } }\nn2: { interfaces: { prov: { address: 10.77.1.1 } } }\n',
      ),
      'nodes.yaml:2:29: n2.interfaces.prov.address: same address as n1 (10.77.1.1, nodes.yaml:1)',
    ],
    [
      'the same twice, written in two ways',
      {
        ...networks('v6: { cidr: "fd00::/64" }'),
        ...nodes(
          'n1: { interfaces: { v6: { address: "fd00::1" } } }\nn2: { interfaces: { v6: { address: "FD00:0::01" } } }\n',
        ),
      },
      'nodes.yaml:2:27: n2.interfaces.v6.address: same address as n1 (fd00::1, nodes.yaml:1)',
    ],
    [
      'of a BMC and of an interface',
      nodes('n1: { interfaces: { prov: { address: 10.77.1.1 } } }\nn2: { bmc: { address: 10.77.1.1 } }\n'),
      'nodes.yaml:2:14: n2.bmc.address: same address as n1 (10.77.1.1, nodes.yaml:1)',
    ],
    [
      'by rules that overlap',
      {
        'nodes.yaml': `n[1-9]: { interfaces: { prov: { address: "{{ '10.77.1.0' | ip_add(index) }}" } } }\n`,
        'nodes/more.yaml': `g[1-9]: { interfaces: { prov: { address: "{{ '10.77.1.6' | ip_add(index) }}" } } }\n`,
      },
      'nodes/more.yaml:1:33: g[1-3].interfaces.prov.address: same address as n7 (10.77.1.7, nodes.yaml:1)',
    ],
    [
      'the same MAC twice',
      nodes(
        'n1: { interfaces: { prov: { mac: "52:54:00:00:00:0a" } } }\nn2:\n  interfaces: { prov: { mac: "52:54:00:00:00:0a" } }\n',
      ),
      'nodes.yaml:3:25: n2.interfaces.prov.mac: same MAC as n1 (52:54:00:00:00:0a, nodes.yaml:1)',
    ],
    [
      'the same MAC in capitals',
      nodes(
        'n1: { interfaces: { prov: { mac: "52:54:00:00:00:0a" } } }\nn2:\n  interfaces: { prov: { mac: "52:54:00:00:00:0A" } }\n',
      ),
      'nodes.yaml:3:25: n2.interfaces.prov.mac: same MAC as n1 (52:54:00:00:00:0a, nodes.yaml:1)',
    ],
    [
      'the same place twice, as number and as text',
      nodes('n1: { location: { switch: sw1, port: 1 } }\nn2: { location: { switch: sw1, port: "1" } }\n'),
      'nodes.yaml:2:32: n2.location.port: same place as n1 (sw1 port 1, nodes.yaml:1)',
    ],
  ])

  test('what only looks the same', async () => {
    const text = `n1: { location: { switch: sw1, port: 1, rack: r1, slot: 1 } }
n2: { location: { switch: sw2, port: 1, rack: r1, slot: 1 } }
n3: { location: { rack: r1, slot: 1 } }
`
    expect(await problemsOf(nodes(text))).toEqual([])
  })
})

describe('references to nothing', () => {
  each([
    [
      'a group',
      { 'groups/gpu.yaml': '{}', ...nodes('n1: { groups: [gpus] }\n') },
      'nodes.yaml:1:16: n1.groups: there is no group gpus — did you mean gpu?',
    ],
    [
      'a group, told once for many nodes',
      nodes('n[1-3]:\n  groups:\n  - compute\n'),
      'nodes.yaml:3:5: n[1-3].groups: there is no group compute',
    ],
    ['a group to build on', group('groups: [compute]\n'), 'groups/g.yaml:1:10: groups: there is no group compute'],
    [
      'a network, by the name of the interface',
      nodes('n1: { interfaces: { prv: { address: 10.77.1.1 } } }\n'),
      'nodes.yaml:1:21: n1.interfaces.prv: there is no network prv — did you mean prov?',
    ],
    [
      'a network',
      nodes('n1: { interfaces: { eth0: { network: porv } } }\n'),
      'nodes.yaml:1:29: n1.interfaces.eth0.network: there is no network porv — did you mean prov?',
    ],
    [
      'an image',
      nodes('n1: { boot: { image: bsae } }\n'),
      'nodes.yaml:1:15: n1.boot.image: there is no image bsae (images/bsae/image.yaml) — did you mean base?',
    ],
    [
      'an image by channel',
      nodes('n1: { boot: { image: "gpu@stable" } }\n'),
      'nodes.yaml:1:15: n1.boot.image: there is no image gpu (images/gpu/image.yaml)',
    ],
    [
      'an image of all nodes',
      site('site: demo\ndefaults: { boot: { image: compute } }\n'),
      'site.yaml:2:21: n[1-3].boot.image: there is no image compute (images/compute/image.yaml)',
    ],
    [
      'a file',
      { ...nodes('n1: { files: { /etc/motd: mtod.j2 } }\n'), 'files/motd.j2': '' },
      'nodes.yaml:1:16: n1.files./etc/motd: there is no files/mtod.j2 — did you mean motd.j2?',
    ],
    [
      'a folder',
      { ...nodes('n1: { files: { /etc/motd.d: { source: sbu } } }\n'), 'files/sub/motd': '' },
      'nodes.yaml:1:16: n1.files./etc/motd.d: there is no files/sbu — did you mean sub?',
    ],
    [
      'a file whose name is a template',
      nodes('n[1-2]: { files: { /etc/motd: "motd.{{ name }}" } }\n'),
      'nodes.yaml:1:20: n[1-2].files./etc/motd: there is no files/motd.n1',
    ],
    [
      'nodes of a cluster',
      { 'clusters/c.yaml': 'nodes: n[1-5]\n' },
      'clusters/c.yaml:1:8: nodes: n[4-5]: no such node in nodes.yaml or nodes/',
    ],
    [
      'a group in a cluster',
      { 'clusters/c.yaml': 'nodes: "@gpu"\n' },
      'clusters/c.yaml:1:8: nodes: node set @gpu, column 1: no group is named gpu',
    ],
  ])
})

describe('groups that build on each other in a circle', () => {
  each([
    [
      'on itself',
      { 'groups/a.yaml': 'groups: [a]\n' },
      'groups/a.yaml:1:10: groups: groups build on each other in a circle: a → a',
    ],
    [
      'of two',
      { 'groups/a.yaml': 'groups: [b]\n', 'groups/b.yaml': 'groups: [a]\n' },
      'groups/b.yaml:1:10: groups: groups build on each other in a circle: a → b → a',
    ],
    [
      'of three',
      {
        'groups/a.yaml': 'groups: [b]\n',
        'groups/b.yaml': 'domain: x\ngroups: [c]\n',
        'groups/c.yaml': 'groups:\n- a\n',
      },
      'groups/c.yaml:2:3: groups: groups build on each other in a circle: a → b → c → a',
    ],
    [
      'that one only leads into',
      { 'groups/a.yaml': 'groups: [b]\n', 'groups/b.yaml': 'groups: [c]\n', 'groups/c.yaml': 'groups: [b]\n' },
      'groups/c.yaml:1:10: groups: groups build on each other in a circle: b → c → b',
    ],
  ])
})

describe('names of nodes', () => {
  each([
    [
      'a set that is not closed',
      nodes('"n[1-": {}\n'),
      'nodes.yaml:1:1: node set n[1-, column 5: expected the end of the range 1-, found the end',
    ],
    [
      'a range that runs backwards',
      nodes('n1: {}\nn[3-2]: {}\n'),
      'nodes.yaml:2:1: node set n[3-2], column 3: the range 3-2 runs backwards, write 2-3',
    ],
    [
      'a group',
      { ...group('{}'), ...nodes('"@g": {}\n') },
      'nodes.yaml:1:1: node set @g, column 1: groups are not known here',
    ],
    [
      'a wild card',
      nodes('"n*": {}\n'),
      'nodes.yaml:1:1: node set n*, column 1: wild cards need the list of all nodes, which is not known here',
    ],
    [
      'far too many',
      nodes('n[1-9999999]: {}\n'),
      'nodes.yaml:1:1: node set n[1-9999999], column 2: these are 9,999,999 numbers, the limit is 1,000,000',
    ],
    ['a set of none', nodes('n1: {}\n"": {}\n'), 'nodes.yaml:2:1: "" names no node'],
    ['capitals', nodes('N1: {}\n'), 'nodes.yaml:1:1: N1: is not a host name (lower-case letters, digits and -)'],
    [
      'an underscore, of many',
      nodes('n_[1-3]: {}\n'),
      'nodes.yaml:1:1: n_[1-3]: is not a host name (lower-case letters, digits and -)',
    ],
    [
      'a dash at the end',
      nodes('n1-: {}\n'),
      'nodes.yaml:1:1: n1-: is not a host name (lower-case letters, digits and -)',
    ],
    [
      'a domain with it',
      nodes('n1.demo: {}\n'),
      'nodes.yaml:1:1: n1.demo: is not a host name (lower-case letters, digits and -)',
    ],
    [
      'too long',
      nodes(`${'n'.repeat(64)}: {}\n`),
      `nodes.yaml:1:1: ${'n'.repeat(64)}: is not a host name (lower-case letters, digits and -)`,
    ],
  ])
})

describe('clusters', () => {
  each([
    [
      'a node in none',
      { 'clusters/c.yaml': 'nodes: n[1-2]\n' },
      'nodes.yaml:1:1: n3: is in no cluster: add it to the nodes of one in clusters/',
    ],
    [
      'a node in two',
      { 'clusters/c.yaml': 'nodes: n[1-3]\n', 'clusters/d.yaml': 'nodes: n3\n' },
      'clusters/d.yaml:1:8: nodes: n3: in cluster c already',
    ],
    ['without nodes', { 'clusters/c.yaml': 'domain: x\n' }, 'clusters/c.yaml:1:1: nodes: is missing'],
    ['an empty file', { 'clusters/c.yaml': '# to do\n' }, 'clusters/c.yaml:1:1: nodes: is missing'],
    [
      'nodes that do not parse',
      { 'clusters/c.yaml': 'nodes: "n[1-"\n' },
      'clusters/c.yaml:1:8: nodes: node set n[1-, column 5: expected the end of the range 1-, found the end',
    ],
    ['nodes as a list', { 'clusters/c.yaml': 'nodes: [n1, n2, n3]\n' }, 'clusters/c.yaml:1:8: nodes: must be text'],
  ])
})

describe('templates', () => {
  each([
    [
      'an undefined variable',
      nodes('n[1-3]:\n  vars: { rack: 1, x: "{{ vars.rcak }}" }\n'),
      'nodes.yaml:2:20: n[1-3].vars.x: vars.rcak is not defined — did you mean rack?',
    ],
    [
      'a syntax error',
      group('domain: "{{ index + }}"\n'),
      'groups/g.yaml:1:1: n[1-3].domain: syntax error: unexpected end of input, expected expression',
    ],
    [
      'never closed',
      group('domain: "{{ index"\n'),
      'groups/g.yaml:1:1: n[1-3].domain: syntax error: unexpected end of input, expected end of variable block',
    ],
    [
      'a block that never ends',
      group('vars: { x: "{% if index %}a" }\n'),
      'groups/g.yaml:1:9: n[1-3].vars.x: syntax error: unexpected end of input, expected end of block',
    ],
    [
      'no number in the name',
      nodes('login: { location: { port: "{{ index }}" } }\n'),
      'nodes.yaml:1:22: login.location.port: index is not defined: login has no number in its name',
    ],
    [
      'an address that does not exist, on some nodes',
      nodes('n[1-3]: { interfaces: { prov: { address: "10.77.1.{{ index + 254 }}" } } }\n'),
      'nodes.yaml:1:33: n[2-3].interfaces.prov.address: "10.77.1.256" is not an IP address',
    ],
    [
      'an address outside, on some nodes',
      nodes(`n[1-300]: { interfaces: { prov: { address: "{{ '10.77.254.0' | ip_add(index) }}" } } }\n`),
      'nodes.yaml:1:35: n[256-300].interfaces.prov.address: 10.77.255.0 is in the range for unknown machines (10.77.255.0/24)',
    ],
  ])
})

describe('secrets', () => {
  each([
    [
      'clear text',
      nodes('n1: { bmc: { password: hunter2 } }\n'),
      'nodes.yaml:1:24: n1.bmc.password: must be a secret: set it with muster secret set',
    ],
    [
      'a template',
      nodes('n1: { bmc: { password: "{{ name }}" } }\n'),
      'nodes.yaml:1:24: n1.bmc.password: must be a secret: set it with muster secret set',
    ],
    [
      'clear text that passes itself off as encrypted',
      nodes('n1: { bmc: { password: { $secret: hunter2 } } }\n'),
      'nodes.yaml:1:24: n1.bmc.password: must be a secret: set it with muster secret set',
    ],
    [
      'where text must be',
      nodes('n1: { bmc: { username: !age abc } }\n'),
      'nodes.yaml:1:29: n1.bmc.username: must be text',
    ],
    [
      'a list marked as a secret',
      nodes('n1: { vars: { k: !age [a] } }\n'),
      'nodes.yaml:1:23: !age marks a string, not a map or a list',
    ],
  ])

  test('no problem shows what was meant to be secret', async () => {
    const found = await problemsOf(nodes('n1: { bmc: { password: hunter2, username: { $secret: hunter2 } } }\n'))
    expect(found.join('\n')).not.toContain('hunter2')
    expect(found).not.toEqual([])
  })
})

describe('the site itself', () => {
  each([
    ['no site.yaml', { 'site.yaml': null }, 'site.yaml:1:1: is missing'],
    ['an empty site.yaml', { 'site.yaml': '' }, 'site.yaml:1:1: site: is missing'],
    ['nothing but comments', { 'site.yaml': '# to do\n' }, 'site.yaml:1:1: site: is missing'],
    ['a site without a name', site('domain: x\n'), 'site.yaml:1:1: site: is missing'],
  ])

  test('a directory without site.yaml is no site', async () => {
    const dir = await directoryOf({ 'nodes.yaml': '' })
    expect(await failureOf(() => directorySource(dir))).toBe(
      `SITE_NOT_FOUND: ${dir} holds no site (there is no site.yaml in it)`,
    )
    expect(await failureOf(() => directorySource(join(dir, 'none')))).toBe(
      `SITE_NOT_FOUND: ${dir}/none holds no site (there is no site.yaml in it)`,
    )
  })

  test('no nodes yet is no mistake', async () => {
    expect(await problemsOf({ 'nodes.yaml': null })).toEqual([])
    expect(await problemsOf({ 'nodes.yaml': '# to come\n' })).toEqual([])
  })
})

describe('one line for many', () => {
  test('a mistake that many nodes share', async () => {
    const files = {
      'nodes.yaml': 'n[001-128]:\n  boot: { image: gpu }\nlogin[1-2]:\n  boot: { image: gpu }\n',
    }
    expect(await problemsOf(files)).toEqual([
      'nodes.yaml:2:11: n[001-128].boot.image: there is no image gpu (images/gpu/image.yaml)',
      'nodes.yaml:4:11: login[1-2].boot.image: there is no image gpu (images/gpu/image.yaml)',
    ])
  })

  test('nodes listed one by one that share a mistake of their group', async () => {
    const files = {
      ...group('domain: "{{ x }}"\n'),
      'nodes.yaml': 'n1: { groups: [g] }\nn2: { groups: [g] }\nlogin: { groups: [g] }\n',
    }
    expect(await problemsOf(files)).toEqual(['groups/g.yaml:1:1: login,n[1-2].domain: x is not defined'])
  })

  test('everything, in the order of files, lines and columns', async () => {
    const files = {
      'site.yaml': 'site: demo\nzebra: 1\nnetworks: { prov: { cidr: x } }\n',
      'groups/b.yaml': 'groups: [none]\nboot: { root: 5 }\n',
      'groups/a.yaml': 'x: [\n',
      'nodes.yaml': 'N1: { groups: [none] }\nn2: { domain: "{{ y }}", zebra: 1 }\n',
    }
    expect(await problemsOf(files)).toEqual([
      'groups/a.yaml:2:1: Flow sequence in block collection must be sufficiently indented and end with a ]',
      'groups/b.yaml:1:10: groups: there is no group none',
      'groups/b.yaml:2:15: boot.root: must be one of ram, projected, disk',
      'nodes.yaml:1:1: N1: is not a host name (lower-case letters, digits and -)',
      'nodes.yaml:1:16: N1.groups: there is no group none',
      'nodes.yaml:2:7: n2.domain: y is not defined',
      'nodes.yaml:2:26: n2.zebra: unknown key',
      'site.yaml:2:1: zebra: unknown key',
      'site.yaml:3:27: networks.prov.cidr: is not a network such as 10.77.0.0/16',
    ])
  })
})

/** The same content as a directory and as a commit. */
async function bothWays(dir: string): Promise<string[]> {
  await git(dir, 'init', '--quiet')
  await commitAll(dir)
  const fromDirectory = await checkDir(dir)
  expect(await check(gitSource(await openRepository(dir), 'HEAD'))).toEqual(fromDirectory)
  return fromDirectory
}

describe('files on disk', () => {
  test('200 MB are not even read', async () => {
    const dir = await directoryOf({ ...SMALL, 'files/core': '' })
    await truncate(join(dir, 'nodes.yaml'), 200 * 2 ** 20)
    await truncate(join(dir, 'files/core'), 200 * 2 ** 20)
    expect(await checkDir(dir)).toEqual([
      'files/core:1:1: is too large: 200 MiB, at most 64',
      'nodes.yaml:1:1: is too large: 200 MiB, at most 32',
    ])
  })

  test('too large in a commit too', async () => {
    const dir = await directoryOf(SMALL)
    await truncate(join(dir, 'nodes.yaml'), 33 * 2 ** 20)
    expect(await bothWays(dir)).toEqual(['nodes.yaml:1:1: is too large: 33 MiB, at most 32'])
  })

  test.each([
    ['an absolute link out', '/etc/passwd', 'is a symbolic link that leads out of the site'],
    ['a relative link out', '../../elsewhere', 'is a symbolic link that leads out of the site'],
    ['a link to nothing', 'nothing', 'is a symbolic link to nothing'],
    ['a link to a directory', '../images', 'is a symbolic link to a directory'],
  ])('%s', async (_, target, message) => {
    const parent = await directoryOf({ elsewhere: 'secret: 1\n', 'site/groups/own.yaml': '{}\n' })
    const dir = join(parent, 'site')
    for (const [path, content] of Object.entries(SMALL)) {
      await mkdir(join(dir, path, '..'), { recursive: true })
      await writeFile(join(dir, path), content)
    }
    await symlink(target, join(dir, 'groups/g.yaml'))
    expect(await bothWays(dir)).toEqual([`groups/g.yaml:1:1: ${message}`])
  })

  test('a link inside the site is a file like any other', async () => {
    const dir = await directoryOf({ ...SMALL, 'groups/a.yaml': 'zebra: 1\n' })
    await symlink('a.yaml', join(dir, 'groups/b.yaml'))
    await symlink('b.yaml', join(dir, 'groups/c.yaml'))
    expect(await bothWays(dir)).toEqual([
      'groups/a.yaml:1:1: zebra: unknown key',
      'groups/b.yaml:1:1: zebra: unknown key',
      'groups/c.yaml:1:1: zebra: unknown key',
    ])
  })

  test('a whole folder that is a link out', async () => {
    const dir = await directoryOf(SMALL)
    await symlink('/etc', join(dir, 'groups'))
    expect(await bothWays(dir)).toEqual(['groups:1:1: is a symbolic link that leads out of the site'])
  })

  test('what is no file at all', async () => {
    const dir = await directoryOf({ ...SMALL, 'files/a': '' })
    await exec('mkfifo', [join(dir, 'files/pipe')])
    expect(await checkDir(dir)).toEqual(['files/pipe:1:1: is not a plain file'])
  })

  test('what is none of our business is not looked at', async () => {
    const dir = await directoryOf({ ...SMALL, 'README.md': '# hello', 'ci/nodes.yaml': 'a: [', '.github/x.yml': '' })
    await symlink('/etc/passwd', join(dir, 'passwd'))
    expect(await bothWays(dir)).toEqual([])
  })
})

test('examples/site has no problems', async () => {
  expect(await checkDir(fileURLToPath(new URL('../../examples/site', import.meta.url)))).toEqual([])
})

test('the site one starts with has no problems', async () => {
  const dir = join(await temporaryDir(), 'demo')
  await initSite(dir, 'demo')
  expect(await checkDir(dir)).toEqual([])
})
