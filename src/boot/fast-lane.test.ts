import { once } from 'node:events'
import { type Server, createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dial, say } from '../api/testing.ts'
import { until } from '../control/testing.ts'
import { type FastLane, addFastLane } from './fast-lane.ts'

const LONG = 'x'.repeat(8_000_000)

let server: Server
let port: number
/** What the server itself was asked, and what was answered before it came to that. */
let slow: string[]
let quick: string[]
let answer: FastLane['answer']

beforeEach(async () => {
  slow = []
  quick = []
  answer = ({ method, url, body, server }) => {
    if (url === '/defect') throw new Error('a defect')
    if (url === '/other' || url === '/slow') return undefined
    quick.push(`${method} ${url} ${body.toString('utf8')} at ${server}`)
    return url === '/long' ? LONG : `quick ${url}`
  }
  server = createServer({ keepAliveTimeout: 15_000 }, (request, response) => {
    slow.push(`${request.method} ${request.url}`)
    response.end(request.url === '/slow' ? LONG : `slow ${request.url}`)
    request.resume()
  })
  addFastLane(server, { answer: request => answer(request), takeOver: () => undefined })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const PLAIN = 'GET /plain HTTP/1.1\r\nHost: x\r\n\r\n'
const LAST = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** All that is said on a connection when these are sent on it, each after the answer to the one before, and then the last. */
async function conversation(socket: Socket, ...requests: readonly string[]): Promise<string> {
  let said = ''
  for (const request of requests) {
    socket.write(request)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    said += chunk.toString('latin1')
  }
  return said + (await say(socket, LAST))
}

const bodies = (text: string): string[] => text.match(/(quick|slow) \/[a-z]+/g) ?? []

describe('a plain request in one piece', () => {
  it('is answered at once', async () => {
    const text = await conversation(await dial(port), PLAIN)
    expect(quick).toEqual(['GET /plain  at 127.0.0.1'])
    expect(slow).toEqual(['GET /last'])
    const [head = '', body] = text.slice(0, text.indexOf('HTTP', 1)).split('\r\n\r\n')
    expect(head.replace(/Date: .{29}/, 'Date: …').split('\r\n')).toEqual([
      'HTTP/1.1 200 OK',
      'content-type: text/plain',
      'content-length: 12',
      'Date: …',
      'Connection: keep-alive',
      'Keep-Alive: timeout=15',
    ])
    expect(body).toBe('quick /plain')
  })

  it('has its body with it', async () => {
    const post =
      'POST /beat HTTP/1.1\r\nHost: x\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\nContent-Length: 5\r\n\r\ngrüß'
    await conversation(await dial(port), post.replace('5', '6'))
    expect(quick).toEqual(['POST /beat grüß at 127.0.0.1'])
  })

  it('is followed by others on the same connection', async () => {
    const again = PLAIN.replace('\r\n\r\n', '\r\nConnection: Keep-Alive\r\n\r\n')
    expect(bodies(await conversation(await dial(port), PLAIN, again, again))).toEqual([
      'quick /plain',
      'quick /plain',
      'quick /plain',
      'slow /last',
    ])
  })

  it('is answered to who has said all it had to say', async () => {
    const socket = await dial(port)
    const text = say(socket, PLAIN)
    socket.end()
    expect(bodies(await text)).toEqual(['quick /plain'])
  })
})

it('who does not take the answer is not asked what else it wants', async () => {
  const socket = await dial(port)
  socket.pause()
  socket.write('GET /long HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('it was answered', async () => quick.length === 1)
  socket.write(PLAIN)
  // Any other is answered meanwhile.
  await conversation(await dial(port), PLAIN)
  expect(quick).toHaveLength(2)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.resume()
  await until('it was answered again', async () => quick.length === 3)
  await say(socket, LAST)
  expect(text.length).toBeGreaterThan(LONG.length)
  expect(bodies(text)).toEqual(['quick /plain', 'slow /last'])
})

describe('goes to the server', () => {
  it.for<[what: string, request: string, status: number]>([
    ['what nobody answers here', 'GET /other HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['what fails here', 'GET /defect HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['another method', 'DELETE /plain HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['who wants the connection closed', 'GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 200],
    ['several at once', PLAIN + PLAIN, 200],
    ['a body in chunks', 'POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n', 200],
    [
      'who waits to be told to go on',
      'POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n',
      100,
    ],
    ['an old version', 'GET /plain HTTP/1.0\r\nHost: x\r\n\r\n', 200],
    ['no host', 'GET /plain HTTP/1.1\r\nAccept: */*\r\n\r\n', 400],
    ['no header', 'GET /plain HTTP/1.1\r\n\r\n', 400],
    ['two lengths', 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 0\r\n\r\nx', 400],
    ['a length that is none', 'POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: one\r\n\r\nx', 400],
    ['a line that goes on', 'GET /plain HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n', 400],
    ['a line feed alone', 'GET /plain HTTP/1.1\r\nHost: x\nA: b\r\n\r\n', 400],
    ['a carriage return alone', 'GET /plain HTTP/1.1\r\nHost: x\rA: b\r\n\r\n', 400],
    ['a space before the colon', 'GET /plain HTTP/1.1\r\nHost : x\r\n\r\n', 400],
    ['rubbish', '\0\r\n\r\n', 400],
  ])('%s', async ([, request, status]) => {
    const socket = await dial(port)
    socket.write(request)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect(chunk.toString('latin1')).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(quick).toEqual([])
  })

  it.for([1, 10, PLAIN.length - 1])('what comes in pieces, the first of %i bytes', async length => {
    const connected = once(server, 'connection') as Promise<[Socket]>
    const socket = await dial(port)
    const [there] = await connected
    const arrived = once(there, 'data')
    socket.write(PLAIN.slice(0, length))
    await arrived
    expect(bodies(await say(socket, PLAIN.slice(length) + LAST))).toEqual(['slow /plain', 'slow /last'])
    expect(quick).toEqual([])
  })

  it('a body that comes later', async () => {
    const socket = await dial(port)
    const connected = once(server, 'request')
    socket.write('POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n')
    await connected
    expect(bodies(await say(socket, `12345${LAST}`))).toEqual(['slow /a', 'slow /last'])
  })

  it('all that comes after it on the same connection', async () => {
    const other = 'GET /other HTTP/1.1\r\nHost: x\r\n\r\n'
    const text = await conversation(await dial(port), PLAIN, other, PLAIN)
    expect(bodies(text)).toEqual(['quick /plain', 'slow /other', 'slow /plain', 'slow /last'])
  })

  it('and answers large ones to who asks several at once, and later once more', async () => {
    const socket = await dial(port)
    socket.pause()
    socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3))
    await until('the server was asked', async () => slow.length > 0)
    socket.write(PLAIN)
    const text = await say(socket.resume(), LAST)
    expect(text.length).toBeGreaterThan(3 * LONG.length)
    expect(slow).toEqual(['GET /slow', 'GET /slow', 'GET /slow', 'GET /plain', 'GET /last'])
  })

  it('thousands of headers are no work', async () => {
    const many = `GET /plain HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(2000)}\0: c\r\n\r\n`
    expect(await say(await dial(port), many)).toMatch(/^HTTP\/1\.1 4/)
  })
})

describe('the end of the server', () => {
  it('is the end of connections that wait', async () => {
    const [one, other] = [await dial(port), await dial(port)]
    one.write(PLAIN)
    await once(one, 'data')
    const gone = Promise.all([once(one, 'close'), once(other, 'close'), once(server, 'close')])
    one.resume()
    other.resume()
    server.close()
    await gone
    expect([one.closed, other.closed]).toEqual([true, true])
  })

  it('can be made the end of all connections', async () => {
    const connected = once(server, 'connection')
    const socket = await dial(port)
    await connected
    const gone = once(socket, 'close')
    socket.resume()
    server.closeAllConnections()
    await gone
    expect(socket.closed).toBe(true)
  })
})
