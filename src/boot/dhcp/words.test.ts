import { expect, test } from 'vitest'
import { dnsName, macAddress, word } from './words.ts'

test.each(['prov', '10.77.0.1', 7180, '/var/lib/muster/dnsmasq'])('%j is one word', value => {
  expect(word(value, 'it')).toBe(String(value))
})

test.each(['', 'a,b', 'a\nserver=1.2.3.4', 'a b', 'a#b', 'a"b', 'a\\nb', 'a\tb', 'ä', 'a\u0000'])(
  '%j would become more than one word',
  value => {
    expect(() => word(value, 'network')).toThrow(
      `network: ${JSON.stringify(value)} cannot be written into a configuration`,
    )
  },
)

test('names of DNS are written in small letters', () => {
  expect(dnsName('N001.Cluster.example', 'it')).toBe('n001.cluster.example')
})

test.each(['', '.', 'a..b', '-a', 'a-', 'a/b', 'a b', 'a\n', 'a,b'])('%j is no name of DNS', value => {
  expect(() => dnsName(value, 'n001')).toThrow(`n001: ${JSON.stringify(value)} is not a name for DNS`)
})

test('MAC addresses are written in small letters', () => {
  expect(macAddress('52:54:00:AB:CD:EF', 'it')).toBe('52:54:00:ab:cd:ef')
})

test.each(['', '52:54:00:ab:cd', '52:54:00:ab:cd:ef,ignore', '52:54:00:ab:cd:*', '52-54-00-ab-cd-ef'])(
  '%j is no MAC address',
  value => {
    expect(() => macAddress(value, 'n001')).toThrow(`n001: ${JSON.stringify(value)} is not a MAC address`)
  },
)
