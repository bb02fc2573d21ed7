import { once } from 'node:events'
import { mkdtemp, readdir, readlink, rename, rm, truncate, writeFile } from 'node:fs/promises'
import http, { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../control/testing.ts'
import { Artefacts } from './artefacts.ts'
import { hex, sha256Of } from './testing.ts'

let dir: string
let server: Server
let artefacts: Artefacts
/** Digests that were looked for on disk, in order. */
let looked: string[]
let logged: string[]
/** Called before anything is sent. */
let before: (response: ServerResponse) => Promise<void>

const BUDGET = 4000

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-artefacts-'))
  looked = []
  logged = []
  before = async () => {}
  const logger = pino({ base: null }, { write: line => void logged.push((JSON.parse(line) as { msg: string }).msg) })
  const pathOf = (sha256: string): string => {
    looked.push(sha256)
    return join(dir, sha256)
  }
  artefacts = new Artefacts({ pathOf }, { logger, budget: BUDGET })
  server = createServer(
    (request, response) =>
      void before(response)
        .then(() => artefacts.send(request.url?.slice(1) ?? '', request, response))
        .catch(() => response.destroy()),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await rm(dir, { recursive: true, force: true })
})

/** A file of that content, under its digest. */
async function put(content: string | Buffer): Promise<string> {
  const sha256 = sha256Of(content)
  await writeFile(join(dir, sha256), content)
  return sha256
}

const ask = (sha256: string, headers: Record<string, string> = {}, method = 'GET'): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { port } = server.address() as AddressInfo
    http
      .request({ port, path: `/${sha256}`, method, headers, agent: false }, resolve)
      .once('error', reject)
      .end()
  })

interface Got {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}
const get = async (sha256: string, headers?: Record<string, string>, method?: string): Promise<Got> => {
  const response = await ask(sha256, headers, method)
  const { date: _, connection: __, 'keep-alive': ___, ...rest } = response.headers
  return { status: response.statusCode, headers: rest, body: (await buffer(response)).toString('latin1') }
}

const HUNDRED = Array.from({ length: 10 }, (_, row) => `${row}123456789`).join('')
const common = (sha256: string) => ({
  etag: `"${sha256}"`,
  'cache-control': 'public, max-age=31536000, immutable',
  'accept-ranges': 'bytes',
  'content-type': 'application/octet-stream',
})

/** From memory, and from a file that is too large to be kept. */
const KINDS: readonly [kind: string, content: string][] = [
  ['in memory', HUNDRED],
  ['too large for that', HUNDRED.repeat(50)],
]

describe.for(KINDS)('an artefact %s', ([, content]) => {
  const size = content.length

  it('is sent whole', async () => {
    const sha256 = await put(content)
    const expected = { status: 200, headers: { ...common(sha256), 'content-length': String(size) }, body: content }
    expect(await get(sha256)).toEqual(expected)
    expect(await get(sha256)).toEqual(expected)
    expect(artefacts.sent).toBe(2 * size)
  })

  it('is described to who only asks for that', async () => {
    const sha256 = await put(content)
    expect(await get(sha256, {}, 'HEAD')).toEqual({
      status: 200,
      headers: { ...common(sha256), 'content-length': String(size) },
      body: '',
    })
    expect(artefacts.sent).toBe(0)
  })

  it.for<[range: string, from: number, to: number]>([
    ['bytes=0-9', 0, 10],
    ['bytes=10-', 10, Infinity],
    ['bytes=-5', -5, Infinity],
    ['bytes=90-100000', 90, Infinity],
  ])('is sent in parts: %s', async ([range, from, to]) => {
    const sha256 = await put(content)
    const part = content.slice(from, to)
    const start = from < 0 ? size + from : from
    expect(await get(sha256, { range })).toEqual({
      status: 206,
      headers: {
        ...common(sha256),
        'content-length': String(part.length),
        'content-range': `bytes ${start}-${start + part.length - 1}/${size}`,
      },
      body: part,
    })
    expect(artefacts.sent).toBe(part.length)
  })

  it('has no part behind its end', async () => {
    const sha256 = await put(content)
    for (const range of [`bytes=${size}-`, 'bytes=-0'])
      expect(await get(sha256, { range })).toEqual({
        status: 416,
        headers: { ...common(sha256), 'content-range': `bytes */${size}`, 'transfer-encoding': 'chunked' },
        body: '',
      })
  })

  it.for(['bytes=5-2', 'bytes=0-1,5-6', 'lines=1-2', 'rubbish'])('is sent whole to who asks for %s', async range => {
    const sha256 = await put(content)
    expect((await get(sha256, { range })).status).toBe(200)
  })

  it('is resumed if it is still the same, and sent whole if not', async () => {
    const sha256 = await put(content)
    const range = 'bytes=10-19'
    expect((await get(sha256, { range, 'if-range': `"${sha256}"` })).body).toBe('1123456789')
    expect(await get(sha256, { range, 'if-range': `"${hex('0')}"` })).toMatchObject({ status: 200, body: content })
    expect(await get(sha256, { range, 'if-range': 'Sun, 01 Mar 2026 12:00:00 GMT' })).toMatchObject({ status: 200 })
  })

  it('is not sent to who has it', async () => {
    const sha256 = await put(content)
    expect(await get(sha256, { 'if-none-match': `"${sha256}"` })).toEqual({
      status: 304,
      headers: common(sha256),
      body: '',
    })
    expect((await get(sha256, { 'if-none-match': `"${hex('0')}"` })).status).toBe(200)
  })

  it('is never sent when it is damaged, and is when it has been repaired', async () => {
    const sha256 = await put(content)
    const file = join(dir, sha256)
    await writeFile(file, content.replace('5', '6'))
    for (const range of [undefined, 'bytes=0-9'])
      expect(await get(sha256, range === undefined ? {} : { range })).toMatchObject({
        status: 503,
        headers: { 'content-type': 'text/plain', 'retry-after': '10' },
        body: 'error: what lies here has another digest\nhint: muster image verify on the server says more\n',
      })
    expect(logged).toEqual(['artefact is damaged: it is not sent', 'artefact is damaged: it is not sent'])
    expect(artefacts.sent).toBe(0)
    await writeFile(`${file}.new`, content)
    await rename(`${file}.new`, file)
    expect(await get(sha256)).toMatchObject({ status: 200, body: content })
  })

  it.for<[what: string, change: (file: string) => Promise<void>]>([
    ['cut off', file => truncate(file, 50)],
    ['longer than it should be', file => writeFile(file, `${content}more`)],
    ['empty', file => truncate(file, 0)],
  ])('is never sent when it is %s', async ([, change]) => {
    const sha256 = await put(content)
    await change(join(dir, sha256))
    expect((await get(sha256)).status).toBe(503)
  })

  it('is looked for again by who asks again', async () => {
    const sha256 = sha256Of(content)
    expect(await get(sha256)).toMatchObject({
      status: 404,
      headers: { 'content-type': 'text/plain', 'retry-after': '10' },
      body: 'error: this boot server does not have it\nhint: it may still be on its way; ask again, or another server\n',
    })
    await put(content)
    expect((await get(sha256)).status).toBe(200)
  })

  it('is no loss for the others when one of them leaves', async () => {
    const sha256 = await put(content)
    const leaving = http.get({ port: (server.address() as AddressInfo).port, path: `/${sha256}`, agent: false })
    leaving.once('error', () => {})
    const staying = get(sha256)
    leaving.destroy()
    expect((await staying).body).toBe(content)
  })
})

describe('an artefact without content', () => {
  it('is nothing', async () => {
    const sha256 = await put('')
    expect(await get(sha256)).toMatchObject({ status: 200, headers: { 'content-length': '0' }, body: '' })
    expect((await get(sha256, { range: 'bytes=0-' })).status).toBe(416)
  })
})

describe('memory', () => {
  /** A thousand bytes each; four of them fit. */
  const contents = ['a', 'b', 'c', 'd', 'e'].map(letter => letter.repeat(1000))

  it('holds what was used last', async () => {
    const [a = '', b = '', c = '', d = '', e = ''] = await Promise.all(contents.map(put))
    for (const sha256 of [a, b, c, d, a, b, c, d]) await get(sha256)
    expect(looked).toEqual([a, b, c, d])
    await get(a)
    await get(e)
    // b was unused for longest.
    looked = []
    for (const sha256 of [a, c, d, e]) await get(sha256)
    expect(looked).toEqual([])
    await get(b)
    expect(looked).toEqual([b])
  })

  it('holds what is right even if its file is not any more, until there is no room', async () => {
    const [a = '', ...others] = await Promise.all(contents.map(put))
    await get(a)
    await writeFile(join(dir, a), 'rubbish')
    expect((await get(a)).body).toBe(contents[0])
    for (const sha256 of others) await get(sha256)
    expect((await get(a)).status).toBe(503)
  })

  it('holds nothing that takes more than half of it', async () => {
    const [half, more] = [await put('x'.repeat(BUDGET / 2)), await put('x'.repeat(BUDGET / 2 + 1))]
    for (const sha256 of [half, half, more, more]) expect((await get(sha256)).status).toBe(200)
    expect(looked).toEqual([half, more, more])
  })

  it('is filled once, however many ask at once', async () => {
    const sha256 = await put(HUNDRED)
    const replies = await Promise.all(Array.from({ length: 200 }, () => get(sha256)))
    expect(new Set(replies.map(({ status, body }) => `${status} ${body === HUNDRED}`))).toEqual(new Set(['200 true']))
    expect(looked).toEqual([sha256])
  })

  it('can be filled before anybody asks', async () => {
    const sha256 = await put(HUNDRED)
    await artefacts.warm(sha256)
    await artefacts.warm(sha256)
    await artefacts.warm(hex('0'))
    expect(looked).toEqual([sha256, hex('0')])
    expect((await get(sha256)).body).toBe(HUNDRED)
    expect(looked).toEqual([sha256, hex('0')])
  })
})

/** Descriptors of this process that point into the directory. */
async function openFiles(): Promise<string[]> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  )
  return links.filter(link => link.startsWith(dir))
}

describe('a large file', () => {
  /** More than any buffer on the way holds. */
  const LARGE = Buffer.alloc(48 * 2 ** 20, 'muster')

  it('is checked again when it has changed', async () => {
    const sha256 = await put(HUNDRED.repeat(50))
    expect((await get(sha256)).status).toBe(200)
    await writeFile(join(dir, sha256), HUNDRED.repeat(49).concat(HUNDRED.replace('5', '6')))
    expect((await get(sha256)).status).toBe(503)
    await rm(join(dir, sha256))
    expect((await get(sha256)).status).toBe(404)
  })

  it('is let go of when who fetches it leaves in the middle', async () => {
    const sha256 = await put(LARGE)
    const response = await ask(sha256)
    await once(response, 'readable')
    expect(await openFiles()).toHaveLength(1)
    response.destroy()
    await until('the file is closed', async () => (await openFiles()).length === 0)
  })

  it('is not even opened for who has left before', async () => {
    const sha256 = await put(LARGE)
    const gone = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    before = async response => {
      response.once('close', gone.resolve)
      await gone.promise
      setTimeout(ended.resolve, 0)
    }
    const { port } = server.address() as AddressInfo
    const request = http.get({ port, path: `/${sha256}`, agent: false }).once('error', () => {})
    await once(server, 'request')
    request.destroy()
    await ended.promise
    await until('the file is closed', async () => looked.length > 0 && (await openFiles()).length === 0)
    before = async () => {}
    const { body } = await get(sha256, { range: 'bytes=0-5' })
    expect(body).toBe('muster')
  })

  it('arrives whole at many who are slow', async () => {
    const sha256 = await put(LARGE)
    const slow = async (): Promise<boolean> => {
      const response = await ask(sha256)
      let length = 0
      for await (const chunk of response as AsyncIterable<Buffer>) {
        length += chunk.length
        await new Promise(resolve => setImmediate(resolve))
      }
      return length === LARGE.length
    }
    expect(await Promise.all(Array.from({ length: 5 }, slow))).toEqual([true, true, true, true, true])
    await until('all files are closed', async () => (await openFiles()).length === 0)
  })
})
