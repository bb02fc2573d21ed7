import { describe, expect, it } from 'vitest'
import { writePacket } from './fixtures/packet.ts'
import { RelayedReader, type RelayedRequest, readRequest } from './relayed.ts'

const MAC = '52:54:00:00:00:03'
const PXE = Buffer.from('PXEClient:Arch:00007:UNDI:003001')
const AGENT = Buffer.from('010600040001000302080006001122334455', 'hex')
const SAID = { circuit: '000400010003', remote: '0006001122334455' }

type Options = readonly (readonly [number, Buffer])[]
const message = (options: Options, giaddr?: string): Buffer =>
  writePacket({ op: 1, id: 7, mac: MAC, ...(giaddr !== undefined && { giaddr }), options: new Map(options) })

/** With the headers of IP and UDP. */
function packetOf(body: Buffer): Buffer {
  const header = Buffer.alloc(28)
  header.writeUInt16BE(0x4500, 0)
  header.writeUInt16BE(28 + body.length, 2)
  header[9] = 17
  return Buffer.concat([header, body])
}

/** As tcpdump prints it. */
const printed = (packet: Buffer): string[] => [
  'eth0  In  IP 10.78.0.254.67 > 10.77.0.1.67: UDP, length 264',
  ...Array.from({ length: Math.ceil(packet.length / 16) }, (_, line) => {
    const bytes = packet.toString('hex', 16 * line, 16 * line + 16)
    return `\t0x${(16 * line).toString(16).padStart(4, '0')}:  ${bytes.replaceAll(/....(?!$)/g, '$& ')}`
  }),
]

describe('a request of a machine that boots', () => {
  it('says who, through which port of which switch', () => {
    expect(
      readRequest(
        packetOf(
          message(
            [
              [60, PXE],
              [82, AGENT],
            ],
            '10.78.0.254',
          ),
        ),
      ),
    ).toEqual({
      mac: MAC,
      ...SAID,
      relay: '10.78.0.254',
    })
  })

  it('has no relay where the switch only added to it', () => {
    expect(
      readRequest(
        packetOf(
          message([
            [60, PXE],
            [82, AGENT],
          ]),
        ),
      ),
    ).toEqual({ mac: MAC, ...SAID })
  })

  it.for<[what: string, options: Options]>([
    ['UEFI that boots over HTTP', [[60, Buffer.from('HTTPClient:Arch:00016')]]],
    ['iPXE by its user class', [[77, Buffer.from('iPXE')]]],
    ['iPXE by its own option', [[175, Buffer.from('b1', 'hex')]]],
  ])('may be of %s', ([, options]) => {
    expect(readRequest(packetOf(message([...options, [82, AGENT]])))).toEqual({ mac: MAC, ...SAID })
  })
})

it.for<[what: string, packet: Buffer]>([
  ['of a management controller, which may share the port', packetOf(message([[82, AGENT]]))],
  ['of which no switch says anything', packetOf(message([[60, PXE]]))],
  [
    'with an option 82 that is none',
    packetOf(
      message([
        [60, PXE],
        [82, Buffer.from('0106', 'hex')],
      ]),
    ),
  ],
  [
    'that is an answer',
    packetOf(
      Buffer.concat([
        Buffer.from([2]),
        message([
          [60, PXE],
          [82, AGENT],
        ]).subarray(1),
      ]),
    ),
  ],
  [
    'that is cut off',
    packetOf(
      message([
        [60, PXE],
        [82, AGENT],
      ]),
    ).subarray(0, 200),
  ],
  ['that is empty', Buffer.alloc(0)],
  [
    'of IPv6',
    Buffer.concat([
      Buffer.from([0x60]),
      packetOf(
        message([
          [60, PXE],
          [82, AGENT],
        ]),
      ).subarray(1),
    ]),
  ],
  ['of rubbish', Buffer.alloc(600, 0x45)],
])('a packet %s says nothing', ([, packet]) => {
  expect(readRequest(packet)).toBeUndefined()
})

const read = (...lines: readonly string[]): RelayedRequest[] => {
  const requests: RelayedRequest[] = []
  const reader = new RelayedReader(request => requests.push(request))
  for (const line of lines) reader.line(line)
  return requests
}

describe('what tcpdump prints', () => {
  const packet = packetOf(
    message(
      [
        [60, PXE],
        [82, AGENT],
      ],
      '10.78.0.254',
    ),
  )
  const request = { mac: MAC, ...SAID, relay: '10.78.0.254' }

  it('is a packet as soon as its last line is there', () => {
    expect(read('listening on any, link-type LINUX_SLL2', ...printed(packet))).toEqual([request])
    expect(read(...printed(packet).slice(0, -1))).toEqual([])
    expect(read(...printed(packet), ...printed(packet))).toEqual([request, request])
  })

  it('is passed over where a line is missing, up to the next packet', () => {
    const torn = printed(packet).toSpliced(5, 1)
    expect(read(...torn, ...printed(packet))).toEqual([request])
    expect(read(...printed(packet).slice(3), ...printed(packet))).toEqual([request])
  })

  it('never grows without end', () => {
    const endless = `\t0x0000:  ${'4500 ffff '.repeat(4).trim()}`
    expect(read('a packet', ...Array.from({ length: 10_000 }, () => endless), ...printed(packet))).toEqual([request])
  })
})
