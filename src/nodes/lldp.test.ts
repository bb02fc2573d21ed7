import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Neighbour, parseLldp } from './lldp.ts'

const DESTINATION = '0180c200000e'
const SOURCE = '525400000001'
const HEADER = `${DESTINATION}${SOURCE}88cc`

/** Type, length and value; what is text stands for itself. */
const tlv = (type: number, value: string | Buffer): string => {
  const bytes = Buffer.from(value)
  return ((type << 9) | bytes.length).toString(16).padStart(4, '0') + bytes.toString('hex')
}
const hex = (text: string): Buffer => Buffer.from(text, 'hex')
const END = '0000'

const CHASSIS_MAC = tlv(1, hex('04001122334455'))
const PORT_NAME = tlv(2, '\x05Ethernet1/17')
const TTL = tlv(3, hex('0078'))
const SYSTEM_NAME = tlv(5, 'leaf-03')

const frame = (...parts: string[]): Buffer => hex([HEADER, ...parts, END].join(''))

describe('the neighbour that a frame tells of', () => {
  it.for<[what: string, frame: Buffer, neighbour: Neighbour | undefined]>([
    [
      'is the system and the port by their names',
      frame(CHASSIS_MAC, PORT_NAME, TTL, SYSTEM_NAME),
      { switch: 'leaf-03', port: 'Ethernet1/17' },
    ],
    [
      'is the MAC of the chassis where the system has no name',
      frame(CHASSIS_MAC, PORT_NAME, TTL),
      { switch: '00:11:22:33:44:55', port: 'Ethernet1/17' },
    ],
    [
      'is the address of the chassis',
      frame(tlv(1, hex('05010a4d0001')), PORT_NAME, TTL),
      { switch: '10.77.0.1', port: 'Ethernet1/17' },
    ],
    [
      'is the text of a chassis that is named by hand',
      frame(tlv(1, '\x07rack 4 top'), PORT_NAME, TTL),
      { switch: 'rack 4 top', port: 'Ethernet1/17' },
    ],
    [
      'has the MAC of a port',
      frame(CHASSIS_MAC, tlv(2, hex('03001122334466')), TTL, SYSTEM_NAME),
      { switch: 'leaf-03', port: '00:11:22:33:44:66' },
    ],
    [
      'has the address of a port',
      frame(CHASSIS_MAC, tlv(2, hex('04010a4d0002')), TTL, SYSTEM_NAME),
      { switch: 'leaf-03', port: '10.77.0.2' },
    ],
    [
      'has the description of a port whose id is no text',
      frame(CHASSIS_MAC, tlv(2, hex('0700ff')), TTL, tlv(4, 'port 17'), SYSTEM_NAME),
      { switch: 'leaf-03', port: 'port 17' },
    ],
    [
      'counts the first of two names',
      frame(CHASSIS_MAC, PORT_NAME, SYSTEM_NAME, tlv(5, 'other')),
      { switch: 'leaf-03', port: 'Ethernet1/17' },
    ],
    [
      'has no NULs and blanks around its name',
      frame(CHASSIS_MAC, PORT_NAME, tlv(5, ' leaf-03 \0\0')),
      { switch: 'leaf-03', port: 'Ethernet1/17' },
    ],
    [
      'may stand behind a VLAN tag',
      hex([DESTINATION, SOURCE, '8100', '000c', '88cc', CHASSIS_MAC, PORT_NAME, SYSTEM_NAME, END].join('')),
      { switch: 'leaf-03', port: 'Ethernet1/17' },
    ],
    [
      'needs no end',
      hex([HEADER, CHASSIS_MAC, PORT_NAME, SYSTEM_NAME].join('')),
      { switch: 'leaf-03', port: 'Ethernet1/17' },
    ],
    [
      'is told before the end only',
      frame(CHASSIS_MAC, PORT_NAME, END, SYSTEM_NAME),
      { switch: '00:11:22:33:44:55', port: 'Ethernet1/17' },
    ],
    ['is none without a port', frame(CHASSIS_MAC, TTL, SYSTEM_NAME), undefined],
    ['is none without a chassis and a name', frame(PORT_NAME, TTL), undefined],
    ['is none where the name holds an escape sequence', frame(tlv(1, '\x07\x1b[2J'), PORT_NAME), undefined],
    ['is none where the name is too long', frame(tlv(1, `\x07${'x'.repeat(129)}`), PORT_NAME), undefined],
    ['is none in a frame that is cut off', frame(CHASSIS_MAC, PORT_NAME, SYSTEM_NAME).subarray(0, 30), undefined],
    ['is none in another frame', hex(`${DESTINATION}${SOURCE}0800${CHASSIS_MAC}${PORT_NAME}${SYSTEM_NAME}`), undefined],
    ['is none in no frame', Buffer.alloc(0), undefined],
  ])('%s', ([, bytes, neighbour]) => {
    expect(parseLldp(bytes)).toEqual(neighbour)
  })
})

/** What people may be shown, whoever sent it. */
const expectPlain = (bytes: Buffer): void => {
  const { switch: name, port } = parseLldp(bytes) ?? { switch: 'none', port: 'none' }
  expect(name).toMatch(/^[\x20-\x7e]{1,128}$/)
  expect(port).toMatch(/^[\x20-\x7e]{1,128}$/)
}

describe('whatever bytes come', () => {
  it('nothing is thrown, and names are plain and short', () => {
    expect(() =>
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 1600 }), bytes => expectPlain(Buffer.from(bytes))),
        { numRuns: 2000 },
      ),
    ).not.toThrow()
  })

  it('nor behind the header of a frame', () => {
    const rest = fc.uint8Array({ maxLength: 600 })
    const property = fc.property(rest, bytes => expectPlain(Buffer.concat([hex(HEADER), bytes])))
    expect(() => fc.assert(property, { numRuns: 2000 })).not.toThrow()
  })

  it('nor between whole parts', () => {
    const part = fc.tuple(fc.nat(127), fc.uint8Array({ maxLength: 511 }))
    const property = fc.property(fc.array(part, { maxLength: 8 }), parts => {
      const text = parts.map(([type, value]) => tlv(type, Buffer.from(value)))
      expectPlain(frame(CHASSIS_MAC, ...text))
    })
    expect(() => fc.assert(property)).not.toThrow()
  })

  it('what a switch says is found again', () => {
    const name = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,60}[\x21-\x7e])?$/)
    fc.assert(
      fc.property(name, name, (system, port) => {
        expect(parseLldp(frame(CHASSIS_MAC, tlv(2, `\x05${port}`), tlv(5, system)))).toEqual({ switch: system, port })
      }),
    )
  })
})
