import { expect, test } from 'vitest'
import { nameLines, reservationLines } from './hosts.ts'
import { sample, sampleHost } from './samples.ts'

test('a node that we boot is its MAC and its address, nothing more', () => {
  expect(reservationLines(sample())).toEqual(['52:54:00:00:00:01,10.77.1.1'])
})

test('one that we do not boot is marked, and told its name', () => {
  const hosts = [sampleHost(1, { boots: false }), sampleHost(2, { boots: false, primary: false })]
  expect(reservationLines(sample({ hosts }))).toEqual([
    '52:54:00:00:00:01,set:no-boot,10.77.1.1,n001',
    '52:54:00:00:00:02,set:no-boot,10.77.1.2',
  ])
})

test('one with several ports gets the same address on each', () => {
  const hosts = [sampleHost(1, { macs: ['52:54:00:AA:00:01', '52:54:00:aa:00:02'] })]
  expect(reservationLines(sample({ hosts }))).toEqual(['52:54:00:aa:00:01,52:54:00:aa:00:02,10.77.1.1'])
})

test('without a MAC, in a network that is not ours, or with an address of IPv6 there is nothing to give out', () => {
  const hosts = [sampleHost(1, { macs: [] }), sampleHost(2, { network: 'ib' }), sampleHost(3, { address: 'fd00::3' })]
  expect(reservationLines(sample({ hosts }))).toEqual([])
})

test('beside another DHCP server only who is known matters, and who boots', () => {
  const hosts = [sampleHost(1), sampleHost(2, { boots: false, primary: false })]
  expect(reservationLines(sample({ hosts, mode: 'proxy' }))).toEqual([
    '52:54:00:00:00:01',
    '52:54:00:00:00:02,set:no-boot',
  ])
})

test('one MAC in two networks is one port with two VLANs', () => {
  const networks = [
    { name: 'prov', cidr: '10.77.0.0/16' },
    { name: 'data', cidr: '10.78.0.0/16' },
  ]
  const hosts = [sampleHost(1), sampleHost(1, { network: 'data', address: '10.78.1.1', primary: false })]
  expect(reservationLines(sample({ networks, hosts }))).toEqual([
    '52:54:00:00:00:01,10.77.1.1',
    '52:54:00:00:00:01,10.78.1.1',
  ])
})

test('an address or a MAC that two nodes claim is refused', () => {
  expect(() => reservationLines(sample({ hosts: [sampleHost(1), sampleHost(2, { address: '10.77.1.1' })] }))).toThrow(
    '10.77.1.1 belongs to both n001 and n002',
  )
  const macs = ['52:54:00:00:00:01']
  expect(() => reservationLines(sample({ hosts: [sampleHost(1), sampleHost(2, { macs })] }))).toThrow(
    '52:54:00:00:00:01 in prov belongs to both n001 and n002',
  )
})

test.each([
  { name: 'n001\n10.0.0.1 evil' },
  { name: 'n001 evil' },
  { domain: 'x y' },
  { address: '10.77.1.1\n10.0.0.1' },
  { network: 'a\nb', primary: false },
])('%j does not become a line of its own', change => {
  expect(() => nameLines(sample({ hosts: [sampleHost(1, change)] }))).toThrow(/is not an? (?:name|address)/)
})

test('a node has its full and its plain name; on its other networks it is NAME-NETWORK', () => {
  const hosts = [
    sampleHost(1),
    sampleHost(1, { network: 'ib', address: '10.80.1.1', primary: false, macs: [] }),
    sampleHost(2, { domain: '' }),
    sampleHost(3, { address: 'fd00::3' }),
  ]
  expect(nameLines(sample({ hosts }))).toEqual([
    '10.77.1.1 n001.cluster.example n001',
    '10.80.1.1 n001-ib.cluster.example n001-ib',
    '10.77.1.2 n002',
    'fd00::3 n003.cluster.example n003',
  ])
})
