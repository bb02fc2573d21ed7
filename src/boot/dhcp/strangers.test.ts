import { expect, test } from 'vitest'
import type { DhcpSighting } from './desired.ts'
import { sample, sampleHost } from './samples.ts'
import { Strangers } from './strangers.ts'

const MINUTE = 60_000
const ack = (mac: string, address: string, minute: number): DhcpSighting => ({
  mac,
  kind: 'ack',
  address,
  isFirmware: false,
  at: new Date(minute * MINUTE),
})
const A = '52:54:00:99:00:0a'
const B = '52:54:00:99:00:0b'

test('strangers keep their addresses for as long as they were given them', () => {
  const strangers = new Strangers()
  strangers.saw(ack(A, '10.77.250.1', 0))
  strangers.saw(ack(B, '10.77.250.2', 3))
  expect(strangers.lines(sample(), 9 * MINUTE)).toEqual([`${A},10.77.250.1,10m`, `${B},10.77.250.2,10m`])
  expect(strangers.lines(sample(), 10 * MINUTE)).toEqual([`${B},10.77.250.2,10m`])
  strangers.saw(ack(B, '10.77.250.2', 12))
  expect(strangers.lines(sample(), 20 * MINUTE)).toEqual([`${B},10.77.250.2,10m`])
  expect(strangers.lines(sample(), 22 * MINUTE)).toEqual([])
})

test('one who got another address has only that one', () => {
  const strangers = new Strangers()
  strangers.saw(ack(A, '10.77.250.1', 0))
  strangers.saw(ack(A, '10.77.250.9', 1))
  expect(strangers.lines(sample(), MINUTE)).toEqual([`${A},10.77.250.9,10m`])
})

test('one who has become a node, or whose address has become that of a node, is no stranger', () => {
  const strangers = new Strangers()
  strangers.saw(ack(A, '10.77.250.1', 0))
  strangers.saw(ack(B, '10.77.250.2', 0))
  const hosts = [sampleHost(1, { macs: [A.toUpperCase()] }), sampleHost(2, { address: '10.77.250.2' })]
  expect(strangers.lines(sample({ hosts }), 0)).toEqual([])
})

test.each([{ discover: false }, { mode: 'proxy' as const }])('with %j there are none', change => {
  const strangers = new Strangers()
  strangers.saw(ack(A, '10.77.250.1', 0))
  expect(strangers.lines(sample(change), 0)).toEqual([])
})
