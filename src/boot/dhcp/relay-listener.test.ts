import { pino } from 'pino'
import { expect, it } from 'vitest'
import { writePacket } from './fixtures/packet.ts'
import { RelayListener } from './relay-listener.ts'
import type { RelayedRequest } from './relayed.ts'
import { until } from './testing.ts'

const quiet = pino({ enabled: false })

/** As tcpdump prints a request of iPXE that came through this port. */
function printed(mac: string, port: string): string {
  const options = new Map([
    [77, Buffer.from('iPXE')],
    [82, Buffer.concat([Buffer.from([1, port.length]), Buffer.from(port)])],
  ])
  const body = writePacket({ op: 1, id: 7, mac, giaddr: '10.78.0.254', options })
  const header = Buffer.alloc(28)
  header.writeUInt16BE(0x4500, 0)
  header.writeUInt16BE(28 + body.length, 2)
  header[9] = 17
  const packet = Buffer.concat([header, body]).toString('hex')
  const lines = packet.match(/.{1,32}/g) ?? []
  return ['IP', ...lines.map(line => `\t0x0000:  ${line.replaceAll(/....(?!$)/g, '$& ')}`)].join('\n')
}

const A = '52:54:00:00:00:0a'
const B = '52:54:00:00:00:0b'
const relayed = (mac: string, port: string): RelayedRequest => ({
  mac,
  circuit: Buffer.from(port).toString('hex'),
  relay: '10.78.0.254',
})

it('tells of each machine once, and again when it is elsewhere', async () => {
  const told: RelayedRequest[] = []
  const text = [printed(A, 'eth1'), printed(A, 'eth1'), printed(B, 'eth2'), printed(A, 'eth3'), printed(A, 'eth3')]
  await using listener = new RelayListener({
    logger: quiet,
    onRequest: request => told.push(request),
    now: () => new Date(0),
    listener: ['sh', '-c', 'printf "%s\\n" "$1"; exec sleep infinity', 'sh', [...text, printed(B, 'eth9')].join('\n')],
  })
  await listener.want(true)
  await until(
    async () => told,
    list => list.length >= 4,
  )
  expect(told).toEqual([relayed(A, 'eth1'), relayed(B, 'eth2'), relayed(A, 'eth3'), relayed(B, 'eth9')])
})

it('does nothing where nothing is wanted, and harms nobody where tcpdump is missing', async () => {
  const logged: string[] = []
  const logger = pino({ level: 'warn' }, { write: line => void logged.push(line) })
  await using listener = new RelayListener({ logger, onRequest: () => {}, listener: ['muster-no-such-program'] })
  await listener.want(false)
  expect(logged).toEqual([])
  await listener.want(true)
  expect(logged.join('')).toContain('muster-no-such-program: is not installed')
  await listener.want(false)
})
