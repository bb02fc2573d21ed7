import { expect, test } from 'vitest'
import { servedLoaders } from '../loaders.ts'
import { type Place, renderDnsmasq } from './render.ts'
import { sample } from './samples.ts'

const place: Place = { dir: '/var/lib/muster/dnsmasq', interfaces: ['eth1'], loaders: servedLoaders({}) }

test('addresses: who is answered, and with what', () => {
  const networks = [{ name: 'prov', cidr: '10.77.0.0/16', gateway: '10.77.0.254', unknown: '10.77.250.0/24' }]
  expect(renderDnsmasq(sample({ networks }), place).addresses).toBe(`\
# Written by muster: what is changed here is lost.
user=root
group=root
log-facility=-
bind-dynamic
listen-address=10.77.0.1
port=0
interface=eth1
log-dhcp
dhcp-ignore-clid
dhcp-match=set:is-ipxe,175
dhcp-userclass=set:is-ipxe,iPXE
dhcp-vendorclass=set:is-pxe,PXEClient
dhcp-vendorclass=set:is-http,HTTPClient
dhcp-match=set:tftp-bios,option:client-arch,0
dhcp-match=set:tftp-efi64,option:client-arch,6
dhcp-match=set:tftp-efi64,option:client-arch,7
dhcp-match=set:tftp-efi64,option:client-arch,9
dhcp-match=set:http-efi64,option:client-arch,16
dhcp-authoritative
no-ping
dhcp-ignore-names
dhcp-no-override
leasefile-ro
dhcp-lease-max=1000000
dhcp-hostsfile=/var/lib/muster/dnsmasq/strangers
dhcp-hostsfile=/var/lib/muster/dnsmasq/reservations
dhcp-hostsdir=/var/lib/muster/dnsmasq/added
dhcp-option-force=tag:is-ipxe,encap:175,176,1b
dhcp-option-force=tag:is-pxe,tag:!no-boot,60,PXEClient
dhcp-option-force=tag:is-pxe,tag:!no-boot,vendor:PXEClient,6,8b
dhcp-option-force=tag:is-http,tag:!no-boot,60,HTTPClient
dhcp-range=set:net-prov,10.77.0.0,static,255.255.0.0,1h
dhcp-range=tag:!known,set:net-prov,10.77.250.0,10.77.250.255,255.255.0.0,10m
dhcp-option=tag:net-prov,option:router,10.77.0.254
dhcp-option=tag:net-prov,option:dns-server,10.77.0.1
dhcp-option=tag:net-prov,option:domain-name,cluster.example
dhcp-option=tag:net-prov,option:domain-search,cluster.example
dhcp-boot=tag:net-prov,tag:!no-boot,tag:is-ipxe,http://10.77.0.1:7180/boot.ipxe,,10.77.0.1
dhcp-boot=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:tftp-bios,tag:!is-http,undionly.kpxe,,10.77.0.1
dhcp-boot=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:tftp-efi64,tag:!is-http,snponly.efi,,10.77.0.1
dhcp-boot=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:http-efi64,tag:is-http,http://10.77.0.1:7180/loader/ipxe.efi,,10.77.0.1
dhcp-option-force=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:http-efi64,tag:is-http,option:bootfile-name,http://10.77.0.1:7180/loader/ipxe.efi
enable-ra
ra-param=*,0,0
dhcp-range=fd05:9bb8:a48e::,ra-only,64,1h
`)
})

test('names and loaders: ours from here, all others from those who know', () => {
  expect(renderDnsmasq(sample({ forwarders: ['192.0.2.53', '192.0.2.54'] }), place).names).toBe(`\
# Written by muster: what is changed here is lost.
user=root
group=root
log-facility=-
bind-dynamic
listen-address=10.77.0.1
port=53
no-resolv
no-hosts
domain-needed
cache-size=10000
dns-forward-max=1000
local=/cluster.example/
local=/77.10.in-addr.arpa/
server=192.0.2.53
server=192.0.2.54
addn-hosts=/var/lib/muster/dnsmasq/hosts
enable-tftp
tftp-root=/var/lib/muster/dnsmasq/tftp
tftp-max=1000
`)
})

test("beside the site's own DHCP server: no address, and only a loader for those we boot", () => {
  const { addresses } = renderDnsmasq(sample({ mode: 'proxy' }), place)
  const lines = addresses.split('\n')
  expect(lines.slice(lines.indexOf('dhcp-match=set:http-efi64,option:client-arch,16') + 1)).toEqual([
    'dhcp-hostsfile=/var/lib/muster/dnsmasq/reservations',
    'dhcp-hostsdir=/var/lib/muster/dnsmasq/added',
    'dhcp-ignore=tag:no-boot',
    'dhcp-range=set:net-prov,10.77.0.0,proxy,255.255.0.0',
    'dhcp-boot=tag:net-prov,tag:is-ipxe,http://10.77.0.1:7180/boot.ipxe,,10.77.0.1',
    'pxe-service=tag:!is-ipxe,0,"Muster",undionly.kpxe',
    'pxe-service=tag:!is-ipxe,6,"Muster",snponly.efi',
    'pxe-service=tag:!is-ipxe,7,"Muster",snponly.efi',
    'pxe-service=tag:!is-ipxe,9,"Muster",snponly.efi',
    '',
  ])
})

const lines = (change: Parameters<typeof sample>[0], where = place): string[] =>
  renderDnsmasq(sample(change), where).addresses.split('\n')

test('a site that is closed to strangers answers none, and has no addresses for them', () => {
  const closed = lines({ discover: false })
  expect(closed).toContain('dhcp-ignore=tag:!known')
  expect(closed.filter(line => line.includes('10.77.250'))).toEqual([])
  expect(lines({})).not.toContain('dhcp-ignore=tag:!known')
})

test('where there is no gateway none is named, not even ourselves', () => {
  expect(lines({})).toContain('dhcp-option=tag:net-prov,option:router')
})

test('each network has options of its own, and sends its clients to our address in it', () => {
  const networks = [
    { name: 'prov', cidr: '10.77.0.0/16' },
    { name: 'far', cidr: '10.90.0.0/20', gateway: '10.90.0.1', domain: 'far.example' },
    { name: 'near', cidr: '10.78.0.0/24' },
  ]
  const own = ['10.77.0.1', '10.78.0.1']
  const rendered = lines({ networks, own, servers: [...own, '10.77.0.2'] })
  expect(rendered.filter(line => line.includes('net-far') && !line.includes('!is-ipxe'))).toEqual([
    'dhcp-range=set:net-far,10.90.0.0,static,255.255.240.0,1h',
    'dhcp-option=tag:net-far,option:router,10.90.0.1',
    'dhcp-option=tag:net-far,option:dns-server,10.77.0.1,10.77.0.2',
    'dhcp-option=tag:net-far,option:domain-name,far.example',
    'dhcp-option=tag:net-far,option:domain-search,far.example',
    'dhcp-boot=tag:net-far,tag:!no-boot,tag:is-ipxe,http://10.77.0.1:7180/boot.ipxe,,10.77.0.1',
  ])
  expect(rendered).toContain(
    'dhcp-boot=tag:net-near,tag:!no-boot,tag:is-ipxe,http://10.78.0.1:7180/boot.ipxe,,10.78.0.1',
  )
  expect(rendered.filter(line => line.includes('ra-only'))).toHaveLength(2)
})

test('arm64 is answered when the site has a loader for it', () => {
  const loaders = servedLoaders({ arm64: '/srv/site/files/arm.efi' })
  const rendered = lines({}, { ...place, loaders })
  expect(rendered.filter(line => line.includes('arm64'))).toEqual([
    'dhcp-match=set:tftp-arm64,option:client-arch,11',
    'dhcp-match=set:http-arm64,option:client-arch,19',
    'dhcp-boot=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:tftp-arm64,tag:!is-http,ipxe-arm64.efi,,10.77.0.1',
    'dhcp-boot=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:http-arm64,tag:is-http,http://10.77.0.1:7180/loader/ipxe-arm64.efi,,10.77.0.1',
    'dhcp-option-force=tag:net-prov,tag:!no-boot,tag:!is-ipxe,tag:http-arm64,tag:is-http,option:bootfile-name,http://10.77.0.1:7180/loader/ipxe-arm64.efi',
  ])
})

test('an interface that is not there yet is waited for by its address alone; nothing need be advertised', () => {
  const rendered = lines({ advertise: false }, { ...place, interfaces: [] })
  expect(rendered).toContain('listen-address=10.77.0.1')
  expect(rendered.filter(line => /interface=|^enable-ra|ra-only/.test(line))).toEqual([])
})

test('without an address of our own there is nothing to render', () => {
  expect(() => renderDnsmasq(sample({ own: [] }), place)).toThrow('none of the addresses of the boot servers')
})

test.each([
  { domain: 'a\nserver=192.0.2.1' },
  { forwarders: ['192.0.2.1\nserver=192.0.2.2'] },
  { own: ['10.77.0.1,10.77.0.2'] },
  { networks: [{ name: 'a,b', cidr: '10.77.0.0/16' }] },
  { networks: [{ name: 'prov', cidr: '10.77.0.0/16', gateway: '10.77.0.2,10.77.0.3' }] },
  { networks: [{ name: 'prov', cidr: '10.77.0.0/16', domain: 'a/192.0.2.1' }] },
])('%j does not get out of its line', change => {
  expect(() => renderDnsmasq(sample(change), place)).toThrow(/cannot be written into a configuration|is not a name/)
})
