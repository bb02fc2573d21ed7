import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../control/testing.ts'
import { wholeBlobs } from '../../images/store/testing.ts'
import { ProblemReply } from '../schemas.ts'
import { type Reply, type TestServer, say, startTestServer } from '../testing.ts'

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
const LETTERS = digestOf(ALPHABET)
const NOTHING = digestOf('')
const UNKNOWN = digestOf('nobody has this')

let server: TestServer
let token: string

beforeAll(async () => {
  server = await startTestServer({ maxBlob: 2_000_000 })
  token = await server.token('operator')
  await server.images.put(ALPHABET)
  await server.images.put('')
})
afterAll(() => server[Symbol.asyncDispose]())

const get = (sha256: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> =>
  server.ask(method, `/api/v1/blobs/${sha256}`, { token, headers })

const put = (sha256: string, body: string, headers: Record<string, string> = {}): Promise<Reply> =>
  server.ask('PUT', `/api/v1/blobs/${sha256}`, {
    token,
    body,
    headers: { 'content-type': 'application/octet-stream', ...headers },
  })

const problemOf = (reply: Reply): ProblemReply => ProblemReply.parse(reply.body)
const temporaries = (): Promise<string[]> => readdir(join(server.images.dir, 'tmp'))
const nothingLeft = () => until('nothing is left of it', async () => (await temporaries()).length === 0)

describe('a blob', () => {
  it('is sent whole, with its digest as its tag, to be kept for good', async () => {
    const reply = await get(LETTERS)
    expect(reply.status).toBe(200)
    expect(reply.text).toBe(ALPHABET)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '26',
      'accept-ranges': 'bytes',
      'cache-control': 'private, max-age=31536000, immutable',
      etag: `"${LETTERS}"`,
    })
  })

  it('of no bytes is sent, too', async () => {
    expect(await get(NOTHING)).toMatchObject({ status: 200, text: '', headers: { 'content-length': '0' } })
  })

  it('can be asked about without being read', async () => {
    const reply = await get(LETTERS, {}, 'HEAD')
    expect({ status: reply.status, text: reply.text }).toEqual({ status: 200, text: '' })
    expect(reply.headers).toMatchObject({ 'content-length': '26', etag: `"${LETTERS}"`, 'accept-ranges': 'bytes' })
  })

  it.for([
    ['bytes=0-4', 206, 'abcde', 'bytes 0-4/26'],
    ['bytes=23-', 206, 'xyz', 'bytes 23-25/26'],
    ['bytes=-2', 206, 'yz', 'bytes 24-25/26'],
    ['bytes=20-99', 206, 'uvwxyz', 'bytes 20-25/26'],
    ['bytes=0-1,4-5', 200, ALPHABET, undefined],
    ['rubbish', 200, ALPHABET, undefined],
  ] as const)('is sent in parts: %s', async ([range, status, text, contentRange]) => {
    const reply = await get(LETTERS, { range })
    expect({ status: reply.status, text: reply.text }).toEqual({ status, text })
    expect(reply.headers['content-range']).toBe(contentRange)
    expect(reply.headers['content-length']).toBe(String(text.length))
    expect(reply.headers['etag']).toBe(`"${LETTERS}"`)
  })

  it.for([
    [LETTERS, 'bytes=26-', 'bytes */26'],
    [NOTHING, 'bytes=0-', 'bytes */0'],
  ] as const)('has no part behind its end: %s %s', async ([sha256, range, contentRange]) => {
    const reply = await get(sha256, { range })
    expect(reply.status).toBe(416)
    expect(reply.headers['content-range']).toBe(contentRange)
    expect(problemOf(reply).code).toBe('REQUEST_INVALID')
  })

  it('is sent in part only to those who have the rest of the same', async () => {
    const range = 'bytes=23-'
    expect((await get(LETTERS, { range, 'if-range': `"${LETTERS}"` })).text).toBe('xyz')
    expect((await get(LETTERS, { range, 'if-range': `"${NOTHING}"` })).text).toBe(ALPHABET)
  })

  it('is not sent to those who have it', async () => {
    for (const method of ['GET', 'HEAD']) {
      const reply = await get(LETTERS, { 'if-none-match': `"x", "${LETTERS}"` }, method)
      expect({ status: reply.status, text: reply.text }).toEqual({ status: 304, text: '' })
      expect(reply.headers['etag']).toBe(`"${LETTERS}"`)
    }
    expect((await get(LETTERS, { 'if-none-match': '"x"' })).status).toBe(200)
  })

  it('that is not there is unknown', async () => {
    const reply = await get(UNKNOWN)
    expect(reply.status).toBe(404)
    expect(problemOf(reply)).toMatchObject({ code: 'BLOB_UNKNOWN', message: `there is no blob ${UNKNOWN}` })
    expect((await get(UNKNOWN, {}, 'HEAD')).status).toBe(404)
    expect((await get(UNKNOWN, { 'if-none-match': `"${UNKNOWN}"` }, 'HEAD')).status).toBe(404)
  })

  it.for(['x', LETTERS.toUpperCase(), `${LETTERS}0`, `sha256:${LETTERS}`, '..%2f..%2fnames%2fx.json', '%00'])(
    'is known by its digest in hex only: %s',
    async text => {
      for (const reply of [await get(text), await put(text, ALPHABET)]) {
        expect(reply.status).toBe(400)
        expect(problemOf(reply).code).toBe('REQUEST_INVALID')
      }
    },
  )
})

describe('sending a blob', () => {
  it('stores it, and says so in the log of events', async () => {
    const text = 'new content'
    const sha256 = digestOf(text)
    const reply = await put(sha256, text)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({ sha256, size: 11 })
    expect((await get(sha256)).text).toBe(text)
    const [event] = await server.store.events({ newestFirst: true, limit: 1 })
    expect(event).toMatchObject({
      kind: 'blob.stored',
      actor: 'operator',
      from: '127.0.0.1',
      data: { sha256, size: 11 },
    })
  })

  it('of no bytes, twice, or in chunks is fine', async () => {
    expect((await put(NOTHING, '')).body).toEqual({ sha256: NOTHING, size: 0 })
    expect((await put(LETTERS, ALPHABET)).body).toEqual({ sha256: LETTERS, size: 26 })
    const sha256 = digestOf('in chunks')
    const reply = await say(
      await server.dial(),
      `${upload(sha256)}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nin \r\n6\r\nchunks\r\n0\r\n\r\n`,
    )
    expect(reply).toMatch(/^HTTP\/1\.1 200 /)
    expect((await get(sha256)).text).toBe('in chunks')
  })

  it('that has another digest is refused, and nothing stored', async () => {
    const before = await wholeBlobs(server.images.dir)
    const revision = await server.store.revision()
    const reply = await put(UNKNOWN, ALPHABET)
    expect(reply.status).toBe(400)
    expect(problemOf(reply)).toMatchObject({
      code: 'DIGEST_MISMATCH',
      message: `what arrived is ${LETTERS}, not ${UNKNOWN}`,
    })
    expect(await wholeBlobs(server.images.dir)).toEqual(before)
    expect(await temporaries()).toEqual([])
    expect(await server.store.revision()).toBe(revision)
  })

  it('that breaks off leaves nothing', async () => {
    const before = await wholeBlobs(server.images.dir)
    const socket = await server.dial()
    socket.on('error', () => {})
    socket.write(`${upload(LETTERS)}Content-Length: 26\r\n\r\nabcdef`)
    await until('some of it has arrived', async () => (await temporaries()).length === 1)
    socket.resetAndDestroy()
    await nothingLeft()
    expect(await wholeBlobs(server.images.dir)).toEqual(before)
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
  })

  it('that is cut off by its sender, politely, leaves nothing either', async () => {
    await hangUp(await server.dial())
    await nothingLeft()
    expect(await server.images.has(UNKNOWN)).toBe(false)
  })

  it('that is too large is refused, whether it says so or not, and its sender told', async () => {
    const large = 'x'.repeat(2_000_001)
    const reply = await put(digestOf(large), large)
    expect(reply.status).toBe(413)
    expect(problemOf(reply)).toMatchObject({ code: 'BODY_TOO_LARGE', message: 'a blob may have 2000000 bytes' })

    const text = await say(
      await server.dial(),
      `${upload(digestOf(large))}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`,
    )
    expect(text).toMatch(/^HTTP\/1\.1 413 /)
    expect(await server.images.has(digestOf(large))).toBe(false)
    await nothingLeft()
  })

  it.for(['application/json', 'text/plain', 'multipart/form-data; boundary=x', 'rubbish'])(
    'of the type %s is refused',
    async type => {
      const reply = await put(LETTERS, ALPHABET, { 'content-type': type })
      expect([400, 415]).toContain(reply.status)
      expect(problemOf(reply).code).toBe('REQUEST_INVALID')
    },
  )

  it('without a body is refused', async () => {
    const reply = await server.ask('PUT', `/api/v1/blobs/${LETTERS}`, { token })
    expect(reply.status).toBe(400)
    expect(problemOf(reply).message).toBe('there is no body of the type application/octet-stream')
  })

  it('elsewhere, where no stream is taken, is refused as before', async () => {
    const headers = { 'content-type': 'application/octet-stream' }
    const reply = await server.ask('POST', '/api/v1/site/revert', { token, body: '{"generation":1}', headers })
    expect(reply.status).toBe(400)
    expect(problemOf(reply).code).toBe('REQUEST_INVALID')
  })
})

describe('what is missing', () => {
  it('is told in the order asked', async () => {
    const digests = [UNKNOWN, LETTERS, digestOf('another'), NOTHING]
    const reply = await server.ask('POST', '/api/v1/blobs/missing', { token, body: { digests } })
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({ digests: [UNKNOWN, digestOf('another')] })
  })

  it('can be asked for ten thousand at once, and not for more', async () => {
    const digests = Array.from({ length: 10_000 }, (_, index) => digestOf(`blob ${index}`))
    const reply = await server.ask('POST', '/api/v1/blobs/missing', { token, body: { digests } })
    expect((reply.body as { digests: string[] }).digests).toEqual(digests)
    const more = await server.ask('POST', '/api/v1/blobs/missing', { token, body: { digests: [...digests, LETTERS] } })
    expect(problemOf(more).code).toBe('REQUEST_INVALID')
  })

  it.for([{ digests: ['x'] }, { digests: [`sha256:${LETTERS}`] }, { digests: 'x' }, {}, { digests: [], more: 1 }])(
    'cannot be asked for with %j',
    async body => {
      const reply = await server.ask('POST', '/api/v1/blobs/missing', { token, body })
      expect(problemOf(reply).code).toBe('REQUEST_INVALID')
    },
  )
})

const upload = (sha256: string): string =>
  `PUT /api/v1/blobs/${sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/octet-stream\r\n`

/** Says that it has said everything, half way. */
async function hangUp(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  socket.end(`${upload(UNKNOWN)}Content-Length: 26\r\n\r\nabcdef`)
  socket.resume()
  await new Promise(resolve => socket.once('close', resolve))
}
