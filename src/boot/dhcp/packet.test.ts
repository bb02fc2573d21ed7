import { expect, test } from 'vitest'
import { readPacket, writePacket } from './packet.ts'

test('a packet is read as it was written', () => {
  const packet = {
    op: 1,
    id: 0xdeadbeef,
    mac: '52:54:00:ab:cd:ef',
    broadcast: true,
    ciaddr: '10.77.1.1',
    yiaddr: '10.77.1.2',
    siaddr: '10.77.0.1',
    giaddr: '10.78.0.254',
    file: 'undionly.kpxe',
    options: new Map([
      [53, Buffer.from([1])],
      [60, Buffer.from('PXEClient')],
    ]),
  } as const
  expect(readPacket(writePacket(packet))).toEqual(packet)
})

test('the bytes of RFC 2131', () => {
  const bytes = writePacket({ op: 1, id: 7, mac: '52:54:00:00:00:01', options: new Map([[53, Buffer.from([7])]]) })
  expect(bytes.subarray(0, 12).toString('hex')).toBe('010106000000000700000000')
  expect(bytes.subarray(28, 44).toString('hex')).toBe('52540000000100000000000000000000')
  expect(bytes.subarray(236).toString('hex')).toBe('63825363350107ff')
})

test.each([
  ['too short', Buffer.alloc(239)],
  ['without the magic number', Buffer.alloc(300, 1)],
])('what is %s is no packet', (_, bytes) => {
  expect(readPacket(bytes)).toBeUndefined()
})

test('an option that ends behind the packet is cut off', () => {
  const bytes = writePacket({ op: 2, id: 7, mac: '52:54:00:00:00:01', options: new Map() })
  expect(readPacket(Buffer.concat([bytes.subarray(0, -1), Buffer.from([0, 60, 200, 65, 66])]))?.options).toEqual(
    new Map([[60, Buffer.from('AB')]]),
  )
})
