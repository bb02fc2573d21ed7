import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { exec } from '../lib/exec.ts'
import { sshHostKey } from '../lib/ssh-host-key.ts'
import { checkSite } from './check.ts'
import { READY_NAMES, type ReadyName, readyFile } from './ready-files.ts'
import { FileRenderer } from './render-files.ts'
import { nodeNamed, openSite } from './site.ts'
import { memorySource, temporaryDir } from './testing.ts'

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada'
const SECRET =
  '!age |\n        -----BEGIN AGE ENCRYPTED FILE-----\n        YQ==\n        -----END AGE ENCRYPTED FILE-----\n'
const OPENED = 'k'.repeat(32)
const HOST_KEY = sshHostKey(OPENED, 'n1')
const SITE = {
  'site.yaml': `site: demo
domain: demo.example
networks:
  ib: { cidr: 10.88.0.0/16, gateway: 10.88.0.1 }
  prov: { cidr: 10.77.0.0/16, gateway: 10.77.0.1 }
provision: { servers: [10.77.0.2, 10.77.0.3] }
defaults:
  boot: { image: base }
  vars:
    ssh:
      authorizedKeys: ["${KEY}"]
      hostKeySecret: ${SECRET}    rsyslog: { server: log.demo.example }
    munge:
      key: ${SECRET}`,
  'images/base/image.yaml': 'from: { debian: bookworm }\n',
  'nodes.yaml': `n[1-2]:
  interfaces:
    ib0: { network: ib, address: "10.88.1.{{ index }}" }
    eno1: { network: prov, address: "10.77.1.{{ index }}", mac: "52:54:00:00:00:0{{ index }}" }
n3: { interfaces: { eno1: { network: prov } }, vars: { chrony: { servers: [time.example] }, dns: { servers: [9.9.9.9] } } }
`,
}

async function rendered(ready: ReadyName, node = 'n1', interfaceName = 'eno1'): Promise<string> {
  const of = readyFile(ready).isOfInterface === true ? `, interface: ${interfaceName}` : ''
  const source = memorySource({ ...SITE, 'nodes/x.yaml': `${node}: { files: { /x: { ready: ${ready}${of} } } }\n` })
  const site = await openSite(source)
  expect(checkSite(site)).toEqual([])
  const renderer = new FileRenderer(site, source, () => Promise.resolve(OPENED))
  const [file] = await renderer.render(nodeNamed(site, node))
  if (file === undefined || 'problem' in file) return file?.problem ?? 'nothing'
  if (file.kind !== 'file') throw new Error('it is no file')
  expect(file.mode).toBe(readyFile(ready).mode ?? '0644')
  expect(file.isSecret).toBe(/^munge|^ssh_/.test(ready))
  return file.content.toString()
}

it.for<[name: ReadyName, text: string]>([
  ['hostname', 'n1\n'],
  [
    'hosts',
    `127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
10.77.1.1 n1.demo.example n1
10.88.1.1 n1-ib
10.77.1.2 n2.demo.example n2
10.88.1.2 n2-ib
`,
  ],
  ['resolv.conf', 'search demo.example\nnameserver 10.77.0.2\nnameserver 10.77.0.3\n'],
  [
    'networkd',
    `[Match]
MACAddress=52:54:00:00:00:01

[Network]
DHCP=no
Address=10.77.1.1/16
Gateway=10.77.0.1
Domains=demo.example
DNS=10.77.0.2
DNS=10.77.0.3
`,
  ],
  [
    'networkmanager',
    `[connection]
id=eno1
type=ethernet
autoconnect=true

[ethernet]
mac-address=52:54:00:00:00:01

[ipv4]
method=manual
address1=10.77.1.1/16
gateway=10.77.0.1
dns=10.77.0.2;10.77.0.3;
dns-search=demo.example;

[ipv6]
method=disabled
`,
  ],
  [
    'ifupdown',
    `auto lo
iface lo inet loopback

auto eno1
iface eno1 inet static
    address 10.77.1.1/16
    gateway 10.77.0.1

auto ib0
iface ib0 inet static
    address 10.88.1.1/16
`,
  ],
  ['authorized_keys', `${KEY}\n`],
  ['ssh_host_key', HOST_KEY.private],
  ['ssh_host_key.pub', `${HOST_KEY.public}\n`],
  [
    'ssh_known_hosts',
    `n1,n1.demo.example,10.77.1.1 ${HOST_KEY.public}
n2,n2.demo.example,10.77.1.2 ${sshHostKey(OPENED, 'n2').public}
n3,n3.demo.example ${sshHostKey(OPENED, 'n3').public}
`,
  ],
  [
    'chrony',
    'server 10.77.0.2 iburst\nserver 10.77.0.3 iburst\ndriftfile /var/lib/chrony/chrony.drift\nmakestep 1 3\nrtcsync\n',
  ],
  [
    'rsyslog',
    `*.* action(type="omfwd" target="log.demo.example" port="514" protocol="tcp"
  action.resumeRetryCount="-1" queue.type="LinkedList" queue.size="10000")
`,
  ],
  ['munge.key', OPENED],
  ['cloud-init-meta-data', 'instance-id: n1\nlocal-hostname: n1\n'],
  ['cloud-init-user-data', `#cloud-config\nhostname: n1\nfqdn: n1.demo.example\nssh_authorized_keys: ["${KEY}"]\n`],
  [
    'cloud-init-network-config',
    `version: 2
ethernets:
  eno1:
    match: { macaddress: "52:54:00:00:00:01" }
    addresses: ["10.77.1.1/16"]
    routes: [{ to: default, via: "10.77.0.1" }]
    nameservers: { addresses: ["10.77.0.2","10.77.0.3"] }
  ib0:
    addresses: ["10.88.1.1/16"]
    nameservers: { addresses: ["10.77.0.2","10.77.0.3"] }
`,
  ],
])('%s', async ([name, text]) => {
  expect(await rendered(name)).toBe(text)
})

it('every one of them is tried with a node that has next to nothing, too', async () => {
  const texts = await Promise.all(READY_NAMES.map(async name => [name, await rendered(name, 'n3')] as const))
  expect(Object.fromEntries(texts)).toMatchObject({
    'resolv.conf': 'search demo.example\nnameserver 9.9.9.9\n',
    networkd: '[Match]\nName=eno1\n\n[Network]\nDHCP=yes\nDomains=demo.example\nDNS=9.9.9.9\n',
    ifupdown: 'auto lo\niface lo inet loopback\n\nauto eno1\niface eno1 inet dhcp\n',
    chrony: expect.stringMatching(/^server time\.example iburst\ndriftfile/) as string,
    'cloud-init-network-config': 'version: 2\nethernets:\n  eno1:\n    dhcp4: true\n',
  })
  expect(texts.filter(([, text]) => text.includes('ready/'))).toEqual([])
})

it('what a file needs and nobody says is named', async () => {
  const source = memorySource({
    ...SITE,
    'site.yaml': 'site: demo\ndefaults: { boot: { image: base } }\n',
    'nodes.yaml': 'n1: { files: { /x: { ready: rsyslog } } }\n',
  })
  const site = await openSite(source)
  const [file] = await new FileRenderer(site, source, () => Promise.resolve('')).render(nodeNamed(site, 'n1'))
  expect(file).toMatchObject({ problem: 'ready/rsyslog: line 1: there is no vars.rsyslog.server' })
})

it('is read as it is meant by those it is for', async () => {
  expect(parse(await rendered('cloud-init-network-config'))).toEqual({
    version: 2,
    ethernets: {
      eno1: {
        match: { macaddress: '52:54:00:00:00:01' },
        addresses: ['10.77.1.1/16'],
        routes: [{ to: 'default', via: '10.77.0.1' }],
        nameservers: { addresses: ['10.77.0.2', '10.77.0.3'] },
      },
      ib0: { addresses: ['10.88.1.1/16'], nameservers: { addresses: ['10.77.0.2', '10.77.0.3'] } },
    },
  })
  expect(parse(await rendered('cloud-init-user-data'))).toEqual({
    hostname: 'n1',
    fqdn: 'n1.demo.example',
    ssh_authorized_keys: [KEY],
  })
  const keys = join(await temporaryDir(), 'authorized_keys')
  await writeFile(keys, await rendered('authorized_keys'))
  expect((await exec('ssh-keygen', ['-l', '-f', keys])).stdout.toString()).toMatch(/^256 SHA256:\S+ ada \(ED25519\)\n$/)
})
