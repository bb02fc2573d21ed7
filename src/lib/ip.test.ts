import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addToAddress, canonicalAddress, contains, isAddress, parseNetwork } from './ip.ts'

describe('isAddress', () => {
  test.each(['10.77.0.1', '0.0.0.0', '255.255.255.255', 'fd00::1', '::', '::ffff:10.0.0.1'])('%s is one', text => {
    expect(isAddress(text)).toBe(true)
  })
  test.each([
    '10.77.0',
    '10.77.0.256',
    '010.1.1.1',
    '10.77.0.1.',
    '1.2.3.4.5',
    'fe80::1%eth0',
    '',
    'n001',
    '10.0.0.0/8',
  ])('%s is none', text => {
    expect(isAddress(text)).toBe(false)
  })
})

describe('addToAddress', () => {
  test.each([
    ['10.77.1.0', 300, '10.77.2.44'],
    ['10.0.0.0', 65_536, '10.1.0.0'],
    ['10.0.0.5', -5, '10.0.0.0'],
    ['fd00::', 0x1_0000, 'fd00::1:0'],
  ])('%s + %d = %s', (address, offset, expected) => {
    expect(addToAddress(address, offset)).toBe(expected)
  })
  test.each([
    ['255.255.255.255', 1, '255.255.255.255 + 1 is no address any more'],
    ['rack', 1, '"rack" is not an address'],
    ['10.0.0.0', 0.5, '0.5 is not a whole number'],
  ])('%s + %d fails', (address, offset, message) => {
    expect(() => addToAddress(address, offset)).toThrow(message)
  })
  test('going there and back is staying', () => {
    fc.assert(
      fc.property(fc.ipV4(), fc.nat(1_000_000), (address, offset) => {
        fc.pre(Number(address.split('.')[0]) < 250)
        expect(addToAddress(addToAddress(address, offset), -offset)).toBe(address)
      }),
    )
  })
})

describe('networks', () => {
  const prov = parseNetwork('10.77.0.0/16')
  test('hold what is inside them', () => {
    expect(prov).toMatchObject({ base: '10.77.0.0', bits: 16, kind: 'ipv4' })
    expect(prov && contains(prov, '10.77.255.255')).toBe(true)
    expect(prov && contains(prov, '10.78.0.0')).toBe(false)
    expect(prov && contains(prov, 'fd00::1')).toBe(false)
  })
  test.each(['10.77.0.0', '10.77.0.0/33', '10.77.0.0/16/8', '/16', 'fd00::/129', '10.77.0.0/-1'])(
    '%s is none',
    text => {
      expect(parseNetwork(text)).toBeUndefined()
    },
  )
})

test('canonicalAddress makes equal addresses equal strings', () => {
  expect(canonicalAddress('FD00:0:0::0001')).toBe('fd00::1')
  expect(canonicalAddress('10.0.0.1')).toBe('10.0.0.1')
})
