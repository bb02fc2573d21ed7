import { expect, test } from 'vitest'
import type { DhcpSighting } from './desired.ts'
import { SightingReader } from './sightings.ts'

const at = new Date(0)

function read(...lines: readonly string[]): DhcpSighting[] {
  const seen: DhcpSighting[] = []
  const reader = new SightingReader(
    sighting => seen.push(sighting),
    () => at,
  )
  for (const line of lines) reader.line(line)
  return seen
}

const MAC = '52:54:00:00:00:01'

test('a firmware asks and is answered', () => {
  const vendor = 'PXEClient:Arch:00007:UNDI:003001'
  const seen = read(
    'dnsmasq-dhcp[7]: 3598 available DHCP subnet: 10.77.0.0/255.255.0.0',
    `dnsmasq-dhcp[7]: 3598 vendor class: ${vendor}`,
    `dnsmasq-dhcp[7]: 3598 DHCPDISCOVER(eth1) ${MAC} `,
    'dnsmasq-dhcp[7]: 3598 tags: net-prov, known, eth1',
    `dnsmasq-dhcp[7]: 3598 DHCPOFFER(eth1) 10.77.1.1 ${MAC} `,
    'dnsmasq-dhcp[7]: 3598 sent size:  4 option: 54 server-identifier  10.77.0.1',
  )
  expect(seen).toEqual([
    { mac: MAC, kind: 'discover', vendor, arch: 7, isFirmware: true, at },
    { mac: MAC, kind: 'offer', address: '10.77.1.1', vendor, arch: 7, isFirmware: true, at },
  ])
})

test('iPXE says so in its user class', () => {
  const seen = read(
    'dnsmasq-dhcp[7]: 1 available DHCP subnet: 10.77.0.0/255.255.0.0',
    'dnsmasq-dhcp[7]: 1 user class: iPXE',
    `dnsmasq-dhcp[7]: 1 DHCPREQUEST(eth1) 10.77.1.1 ${MAC} `,
    `dnsmasq-dhcp[7]: 1 DHCPACK(eth1) 10.77.1.1 ${MAC} n001`,
  )
  expect(seen).toEqual([
    { mac: MAC, kind: 'request', address: '10.77.1.1', userClass: 'iPXE', isFirmware: true, at },
    { mac: MAC, kind: 'ack', address: '10.77.1.1', userClass: 'iPXE', isFirmware: true, at },
  ])
})

test('what one client said is not held against the next, nor against its next packet', () => {
  const seen = read(
    'dnsmasq-dhcp[7]: 5 available DHCP subnet: 10.77.0.0/255.255.0.0',
    'dnsmasq-dhcp[7]: 5 vendor class: PXEClient:Arch:00000:UNDI:002001',
    `dnsmasq-dhcp[7]: 5 DHCPDISCOVER(eth1) ${MAC} ignored`,
    'dnsmasq-dhcp[7]: 6 available DHCP subnet: 10.77.0.0/255.255.0.0',
    `dnsmasq-dhcp[7]: 6 DHCPREQUEST(eth1) 10.77.9.9 52:54:00:00:00:02 `,
    `dnsmasq-dhcp[7]: 6 DHCPNAK(eth1) 10.77.9.9 52:54:00:00:00:02 wrong address`,
    'dnsmasq-dhcp[7]: 5 available DHCP subnet: 10.77.0.0/255.255.0.0',
    `dnsmasq-dhcp[7]: 5 DHCPDISCOVER(eth1) ${MAC} `,
  )
  expect(seen.map(({ kind, mac, arch, isFirmware }) => [kind, mac, arch, isFirmware])).toEqual([
    ['discover', MAC, 0, true],
    ['request', '52:54:00:00:00:02', undefined, false],
    ['nak', '52:54:00:00:00:02', undefined, false],
    ['discover', MAC, undefined, false],
  ])
})

test('what a client writes is never taken for what dnsmasq says', () => {
  const seen = read(
    `dnsmasq-dhcp[7]: 8 vendor class: DHCPACK(eth1) 10.77.1.1 ${MAC} `,
    `dnsmasq-dhcp[7]: 8 client provides name: DHCPACK(eth1) 10.77.1.1 ${MAC}`,
    `dnsmasq-dhcp[7]: 8 user class: 9 DHCPACK(eth1) 10.77.1.1 ${MAC} `,
    `dnsmasq[7]: 9 DHCPACK(eth1) 10.77.1.1 ${MAC} `,
    `9 DHCPACK(eth1) 10.77.1.1 ${MAC} `,
  )
  expect(seen).toEqual([])
})

test('what a client writes is kept short and printable', () => {
  const seen = read(
    `dnsmasq-dhcp[7]: 8 vendor class: PXEClient:Arch:00007\u001B[2J${'x'.repeat(500)}`,
    `dnsmasq-dhcp[7]: 8 user class: \u0007iPXE`,
    `dnsmasq-dhcp[7]: 8 DHCPDISCOVER(eth1) ${MAC} `,
  )
  expect(seen).toEqual([
    {
      mac: MAC,
      kind: 'discover',
      vendor: `PXEClient:Arch:00007[2J${'x'.repeat(105)}`,
      arch: 7,
      userClass: 'iPXE',
      isFirmware: true,
      at,
    },
  ])
})

test.each([
  '',
  'dnsmasq-dhcp[7]: DHCP, static leases only on 10.77.0.0, lease time 1h',
  'dnsmasq-dhcp[7]: 12345678901 DHCPDISCOVER(eth1) 52:54:00:00:00:01 ',
  'dnsmasq-dhcp[7]: 1 DHCPDISCOVER(eth1) 52:54:00:00:00:01:02 ',
  'dnsmasq-dhcp[7]: 1 DHCPDISCOVER(eth1) 52:54:00:00:00 ',
  'dnsmasq-dhcp[7]: 1 DHCPINFORM(eth1) 10.77.1.1 52:54:00:00:00:01 ',
])('%j is no sighting', line => {
  expect(read(line)).toEqual([])
})

test('a proxy only ever hears those who boot', () => {
  const seen = read(
    'dnsmasq-dhcp[7]: 5 vendor class: PXEClient:Arch:00007:UNDI:003001',
    `dnsmasq-dhcp[7]: 5 PXE(eth1) ${MAC} proxy`,
  )
  expect(seen.map(({ kind, mac, isFirmware }) => [kind, mac, isFirmware])).toEqual([['discover', MAC, true]])
})
