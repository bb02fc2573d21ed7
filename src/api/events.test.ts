import http, { type IncomingMessage } from 'node:http'
import { type Socket, connect } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operator } from '../control/testing.ts'
import { setNodes } from '../site/edit.ts'
import type { NewEvent, Store } from '../state/store.ts'
import { ApiClient } from './client.ts'
import { EventPage } from './schemas.ts'
import { type SentEvent, type TestServer, request, startTestServer } from './testing.ts'

const STREAM = '/api/v1/events/stream'

let server: TestServer
beforeAll(async () => {
  server = await startTestServer()
  await server.control.apply(operator)
  for (let count = 1; count <= 3; count++) await happen(server.store, 'test.happened')
})
afterAll(() => server[Symbol.asyncDispose]())

const happen = (store: Store, kind: string, data?: unknown): Promise<number> =>
  store.commit([], [{ kind, actor: 'test', ...(data !== undefined && { data }) }])

const ids = (events: readonly SentEvent[]): number[] => events.map(event => Number(event.id))
const between = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe('the stream of events', () => {
  it('begins after a revision, with the past, and goes on with what is new', async () => {
    const before = await server.store.revision()
    const follower = await server.follow(`${STREAM}?after=2`)
    expect(follower.status).toBe(200)
    expect(follower.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    await follower.received(before - 2)
    await happen(server.store, 'test.new')
    const events = await follower.received(before - 1)
    expect(ids(events)).toEqual(between(3, before + 1))
    expect(events.map(event => event.data)).toEqual(await server.store.events({ after: 2 }))
    expect(events.map(event => event.event)).toEqual(events.map(event => event.data.kind))
    follower.leave()
  })

  it('begins with what is new unless told otherwise', async () => {
    const follower = await server.follow(STREAM)
    const revision = await happen(server.store, 'test.new')
    expect(ids(await follower.received(1))).toEqual([revision])
    follower.leave()
  })

  it('goes on where Last-Event-ID says, whatever the query says', async () => {
    const before = await server.store.revision()
    const follower = await server.follow(`${STREAM}?after=0`, { 'last-event-id': String(before - 1) })
    expect(ids(await follower.received(1))).toEqual([before])
    follower.leave()
  })

  it.for(['', ' ', 'x', '-1', '1.5', 'NaN', 'Infinity', '1e999', '9'.repeat(40), '0x1'])(
    'does not take %j for an id: it begins with what is new',
    async id => {
      const follower = await server.follow(STREAM, { 'last-event-id': id })
      const revision = await happen(server.store, 'test.new')
      expect(ids(await follower.received(1))).toEqual([revision])
      follower.leave()
    },
  )

  it('can be resumed again and again while the site is applied, without gap or double', async () => {
    const start = await server.store.revision()
    const changes = 25
    const writing = (async () => {
      for (let count = 0; count < changes; count++) {
        await server.control.edit(operator, site => setNodes(site, 'n001', { 'vars.count': count }), `count ${count}`)
        await server.control.apply(operator)
      }
    })()
    const seen: SentEvent[] = []
    let last = String(start)
    while (seen.length < changes * 2) {
      const follower = await server.follow(STREAM, { 'last-event-id': last })
      await follower.received(1 + Math.floor(Math.random() * Math.min(4, changes * 2 - seen.length)))
      follower.leave()
      await follower.ended
      seen.push(...follower.events)
      last = seen.at(-1)?.id ?? last
    }
    await writing
    expect(ids(seen)).toEqual(between(start + 1, start + changes * 2))
    expect(seen.map(event => event.event)).toEqual(
      Array.from({ length: changes }, () => ['site.edited', 'site.applied']).flat(),
    )
    expect(seen.map(event => event.data)).toEqual(await server.store.events({ after: start }))
  })

  it('cannot be forged by what people write', async () => {
    const follower = await server.follow(STREAM)
    const message = 'one\n\nid: 999\nevent: evil\ndata: {}\n\n\u2028\u2029\r\n\r'
    await happen(server.store, 'test.new', { message })
    const revision = await happen(server.store, 'test.last')
    const events = await follower.received(2)
    expect(ids(events)).toEqual([revision - 1, revision])
    expect(events[0]?.data.data).toEqual({ message })
    follower.leave()
  })

  it('is read by the client of the command line, whatever people write', async () => {
    const message = 'line\n\r\nseparators \u2028 and \u2029 \u0085 of all sorts'
    const revision = await happen(server.store, 'test.new', { message })
    const events = new ApiClient({ server: server.socket }).events({ after: revision - 1 })
    const { value: event } = await events.next()
    await events.return(undefined)
    expect(event).toMatchObject({ revision, data: { message } })
  })

  it.for([
    ['site.applied', ['site.applied']],
    ['site.*', ['site.edited', 'site.applied']],
    ['node.*', ['node.boot.failed', 'node.boot']],
    ['node.boot.*', ['node.boot.failed']],
    ['node.boot', ['node.boot']],
    ['token.*', ['token.created']],
  ] as const)('shows only %s when asked', async ([kind, wanted]) => {
    const after = await server.store.revision()
    const follower = await server.follow(`${STREAM}?kind=${kind}&after=${after}`)
    for (const each of [
      'site.edited',
      'sites.other',
      'node.boot.failed',
      'site',
      'site.applied',
      'token.created',
      'node.boot',
      'nodes.x',
    ])
      await happen(server.store, each)
    const events = await follower.received(wanted.length)
    const rest = await server.follow(`${STREAM}?kind=${kind}`, { 'last-event-id': events[0]?.id ?? '' })
    await happen(server.store, wanted[0])
    expect((await follower.received(wanted.length + 1)).map(event => event.event)).toEqual([...wanted, wanted[0]])
    // Resumed with the same filter: the same again, from there.
    expect((await rest.received(wanted.length)).map(event => event.event)).toEqual([...wanted.slice(1), wanted[0]])
    // The pages agree.
    const page = EventPage.parse((await server.root('GET', `/api/v1/events?after=${after}&kind=${kind}`)).body)
    expect(page.items.map(event => event.kind)).toEqual([...wanted, wanted[0]])
    follower.leave()
    rest.leave()
  })

  it('reaches two hundred at once', async () => {
    const followers = await Promise.all(Array.from({ length: 200 }, () => server.follow(STREAM)))
    const first = await happen(server.store, 'test.new')
    for (let count = 1; count < 10; count++) await happen(server.store, 'test.new')
    for (const follower of followers) expect(ids(await follower.received(10))).toEqual(between(first, first + 9))
    for (const follower of followers) follower.leave()
    await Promise.all(followers.map(follower => follower.ended))
    await happen(server.store, 'test.after')
    expect((await server.root('GET', '/api/v1/status')).status).toBe(200)
  })

  it('answers HEAD at once, with nothing behind it', async () => {
    const { hostname: host, port } = new URL(server.url)
    const token = await server.token('viewer')
    const asked = request({ host, port }, 'HEAD', STREAM, { token, headers: { connection: 'close' } })
    const late = new Promise<'nothing'>(resolve => setTimeout(resolve, 3000, 'nothing').unref())
    expect(await Promise.race([asked.then(reply => reply.status), late])).not.toBe('nothing')
  })
})

describe('pages of events', () => {
  it.for([3, 7, 1000])('of %i give each event once, in both directions', async limit => {
    const all = (await server.store.events()).map(event => event.revision)
    const walk = async (order: 'oldest' | 'newest'): Promise<number[]> => {
      const found: number[] = []
      let from = ''
      for (;;) {
        const reply = await server.root('GET', `/api/v1/events?limit=${limit}&order=${order}${from}`)
        const { items, next } = EventPage.parse(reply.body)
        found.push(...items.map(event => event.revision))
        if (next === null) return found
        from = order === 'oldest' ? `&after=${next}` : `&before=${next}`
      }
    }
    expect(await walk('oldest')).toEqual(all)
    expect(await walk('newest')).toEqual(all.toReversed())
  })

  it('can be a window between two revisions', async () => {
    const reply = await server.root('GET', '/api/v1/events?after=2&before=6')
    expect(EventPage.parse(reply.body).items.map(event => event.revision)).toEqual([3, 4, 5])
  })
})

describe('a client that stops reading', () => {
  it('holds up neither the others nor the server, costs little memory, and misses nothing when it goes on', async () => {
    await using busy = await startTestServer()
    const stalled = await Promise.all(Array.from({ length: 10 }, () => stall(busy.socket)))
    const quick = await count(busy.socket)
    const before = await usedMemory()

    const [batches, size] = [40, 250]
    for (let batch = 0; batch < batches; batch++) {
      const events = Array.from({ length: size }, (): NewEvent => ({
        kind: 'test.big',
        actor: 'test',
        data: 'x'.repeat(10_000),
      }))
      await busy.store.commit([], events as [NewEvent, ...NewEvent[]])
      await quick.received((batch + 1) * size)
      expect((await busy.root('GET', '/healthz')).status).toBe(200)
    }
    // 100 MB went by. Kept for each of the ten it would be 1 GB.
    expect((await usedMemory()) - before).toBeLessThan(250 * 2 ** 20)

    const [one, ...others] = stalled
    for (const socket of others) socket.destroy()
    if (one === undefined) throw new Error('nobody stalled')
    expect(await revisionsIn(one, batches * size)).toEqual(between(1, batches * size))
    one.destroy()
    quick.leave()
  })
})

/** Asks for all events, and never reads an answer. */
async function stall(path: string): Promise<Socket> {
  const socket = connect(path)
  await new Promise(resolve => socket.once('connect', resolve))
  socket.pause()
  socket.write(`GET ${STREAM}?after=0 HTTP/1.1\r\nHost: x\r\n\r\n`)
  return socket
}

/** Reads on where a stalled client stopped. */
async function revisionsIn(socket: Socket, wanted: number): Promise<number[]> {
  const found: number[] = []
  let rest = ''
  for await (const chunk of socket.setEncoding('latin1').iterator({ destroyOnReturn: false })) {
    const text = rest + String(chunk)
    const end = text.lastIndexOf('\n')
    for (const match of text.slice(0, end + 1).matchAll(/^id: (\d+)$/gm)) found.push(Number(match[1]))
    rest = text.slice(end + 1)
    if (found.length >= wanted) break
  }
  return found
}

/** Counts events, and keeps none of them. */
async function count(socketPath: string): Promise<{ received(wanted: number): Promise<void>; leave(): void }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    http.get({ socketPath, path: STREAM, agent: false }, resolve).once('error', reject)
  })
  let [found, tail] = [0, '']
  const watching = new Set<() => void>()
  response.setEncoding('latin1').on('data', (text: string) => {
    found += (tail + text).split('\nid: ').length - 1
    tail = text.slice(-4)
    for (const look of watching) look()
  })
  return {
    received: wanted =>
      new Promise(resolve => {
        const look = (): void => {
          if (found < wanted) return
          watching.delete(look)
          resolve()
        }
        watching.add(look)
        look()
      }),
    leave: () => void response.destroy(),
  }
}

async function usedMemory(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  await new Promise(resolve => setImmediate(resolve))
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
