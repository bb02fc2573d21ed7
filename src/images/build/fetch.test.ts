import { createHash } from 'node:crypto'
import { readFile, readdir, stat, utimes } from 'node:fs/promises'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { directoryOf, temporaryDir } from '../../site/testing.ts'
import { PackageCache, type Wanted } from './fetch.ts'

const shaOf = (content: string): string => createHash('sha256').update(content).digest('hex')

interface Mirror {
  readonly url: string
  /** What was asked for, in order. */
  readonly asked: string[]
}

type Answer = string | ((request: IncomingMessage, reply: ServerResponse) => void)

/** A server with these files; 404 for others. */
async function mirror(files: Readonly<Record<string, Answer>>): Promise<Mirror> {
  const asked: string[] = []
  const server = createServer((request, reply) => {
    const path = decodeURI(request.url ?? '').slice(1)
    asked.push(path)
    const answer = files[path]
    if (typeof answer === 'function') answer(request, reply)
    else if (answer === undefined) reply.writeHead(404).end('<h1>Not Found</h1>')
    else reply.end(answer)
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** An address where nobody listens: it was somebody's until just now. */
async function nobody(): Promise<string> {
  const server = createServer()
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise<void>(resolve => void server.close(() => resolve()))
  return `http://127.0.0.1:${port}`
}

const wanted = (name: string, content: string, ...bases: string[]): Wanted => ({
  name,
  sha256: shaOf(content),
  urls: bases.map(base => `${base}/${name}`),
})

async function emptyCache(): Promise<{
  cache: PackageCache
  dir: string
  told: string[]
  fetch: (...items: Wanted[]) => Promise<void>
}> {
  const dir = join(await temporaryDir(), 'images/packages')
  const cache = new PackageCache(dir)
  const told: string[] = []
  return { cache, dir, told, fetch: (...items) => cache.fetch(items, line => told.push(line)) }
}

async function failureOf(work: Promise<unknown>): Promise<MusterError> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof MusterError) return error
  throw new Error(`no failure of ours: ${String(error)}`)
}

/** Everything in the cache: no half of anything is left in it. */
const keptIn = async (dir: string): Promise<string[]> => {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter(entry => !entry.isDirectory() || entry.name.startsWith('new-'))
    .map(entry => entry.name)
    .sort()
}

describe('what is wanted', () => {
  test('comes from its mirror, once', async () => {
    const server = await mirror({ 'a.deb': 'aaa', 'b.deb': 'bbb' })
    const { cache, dir, told, fetch } = await emptyCache()
    const [a, b] = [wanted('a.deb', 'aaa', server.url), wanted('b.deb', 'bbb', server.url)]
    expect(await cache.has(a.sha256)).toBe(false)
    await fetch(a, b)
    expect(cache.pathOf(a.sha256)).toBe(join(dir, a.sha256.slice(0, 2), a.sha256))
    expect(await readFile(cache.pathOf(a.sha256), 'utf8')).toBe('aaa')
    expect(await readFile(cache.pathOf(b.sha256), 'utf8')).toBe('bbb')
    expect([await cache.has(a.sha256), await cache.has(b.sha256)]).toEqual([true, true])
    expect(told).toEqual(['fetching 2 packages', 'fetched a.deb', 'fetched b.deb'])
    await fetch(a, b)
    expect(server.asked.sort()).toEqual(['a.deb', 'b.deb'])
    expect(told.length).toBe(3)
  })

  test('is only what is missing', async () => {
    const server = await mirror({ 'a.deb': 'aaa', 'b.deb': 'bbb' })
    const { told, fetch } = await emptyCache()
    await fetch(wanted('a.deb', 'aaa', server.url))
    await fetch(wanted('a.deb', 'aaa', server.url), wanted('b.deb', 'bbb', server.url))
    expect(server.asked).toEqual(['a.deb', 'b.deb'])
    expect(told.slice(2)).toEqual(['fetching 1 packages', 'fetched b.deb'])
  })

  test('may be nothing', async () => {
    const { dir, told, fetch } = await emptyCache()
    await fetch()
    expect(told).toEqual([])
    expect(await keptIn(dir)).toEqual([])
  })

  test('may be a hundred at once', async () => {
    const names = Array.from({ length: 100 }, (_, at) => `p${at}.deb`)
    const server = await mirror(Object.fromEntries(names.map(name => [name, `content of ${name}`])))
    const { dir, fetch } = await emptyCache()
    await fetch(...names.map(name => wanted(name, `content of ${name}`, server.url)))
    expect((await keptIn(dir)).length).toBe(100)
  })

  test('may have an odd name, be large, or be empty', async () => {
    const large = 'x'.repeat(5_000_000)
    const server = await mirror({ 'a~1+b:"c"\\.deb': 'odd', 'large.deb': large, 'empty.deb': '' })
    const { cache, fetch } = await emptyCache()
    const odd: Wanted = { name: 'odd', sha256: shaOf('odd'), urls: [`${server.url}/a~1+b:%22c%22%5C.deb`] }
    await fetch(odd, wanted('large.deb', large, server.url), wanted('empty.deb', '', server.url))
    expect((await stat(cache.pathOf(shaOf(large)))).size).toBe(5_000_000)
    expect((await stat(cache.pathOf(shaOf('')))).size).toBe(0)
    expect(await cache.has(odd.sha256)).toBe(true)
  })

  test('is followed to where it was moved', async () => {
    const server = await mirror({
      'a.deb': (_, reply) => void reply.writeHead(302, { location: '/pool/a.deb' }).end('moved'),
      'pool/a.deb': 'aaa',
    })
    const { cache, fetch } = await emptyCache()
    await fetch(wanted('a.deb', 'aaa', server.url))
    expect(await cache.has(shaOf('aaa'))).toBe(true)
  })

  test('may lie in a directory of this machine; but no mirror may lead there', async () => {
    const dir = await directoryOf({ 'a.deb': 'aaa', 'b.deb': 'bbb' })
    const { cache, fetch } = await emptyCache()
    await fetch(wanted('a.deb', 'aaa', `file://${dir}`))
    expect(await cache.has(shaOf('aaa'))).toBe(true)
    const server = await mirror({
      'b.deb': (_, reply) => void reply.writeHead(302, { location: `file://${dir}/b.deb` }).end(),
    })
    const error = await failureOf(fetch(wanted('b.deb', 'bbb', server.url)))
    expect([error.code, error.details]).toEqual([
      'MIRROR_UNREACHABLE',
      [expect.stringMatching(/protocol .*file.* (disabled|not supported)/i)],
    ])
    expect(await cache.has(shaOf('bbb'))).toBe(false)
  })
})

describe('the next mirror is tried', () => {
  const broken: Readonly<Record<string, (good: string) => Promise<string>>> = {
    'when the first does not have it': async () => (await mirror({})).url,
    'when nobody listens at the first': nobody,
    'when the first has something else': async () => (await mirror({ 'a.deb': 'evil' })).url,
    'when the first has something else of the same length': async () => (await mirror({ 'a.deb': 'aab' })).url,
    'when the first breaks off': async () => (await mirror({ 'a.deb': breakOff })).url,
    'when the first has a directory listing': async () =>
      (await mirror({ 'a.deb': (_, reply) => void reply.end('<html>\n') })).url,
    'when the first speaks of a forbidden thing': async () =>
      (await mirror({ 'a.deb': (_, reply) => void reply.writeHead(403).end('aaa') })).url,
    'when the address of the first is none': () => Promise.resolve('http://[not-an-address'),
    'when the first would have us use another protocol': good => Promise.resolve(good.replace('http:', 'gopher:')),
  }

  test.each(Object.entries(broken))('%s', async (_, first) => {
    const good = await mirror({ 'a.deb': 'aaa' })
    const { cache, dir, told, fetch } = await emptyCache()
    await fetch(wanted('a.deb', 'aaa', await first(good.url), good.url))
    expect(await readFile(cache.pathOf(shaOf('aaa')), 'utf8')).toBe('aaa')
    expect(await keptIn(dir)).toEqual([shaOf('aaa')])
    expect(told).toEqual(['fetching 1 packages', 'fetching 1 packages', 'fetched a.deb'])
    expect(good.asked.filter(path => path === 'a.deb').length).toBe(1)
  })

  test('only for what the first did not have', async () => {
    const [first, second] = [await mirror({ 'a.deb': 'aaa' }), await mirror({ 'a.deb': 'aaa', 'b.deb': 'bbb' })]
    const { told, fetch } = await emptyCache()
    await fetch(wanted('a.deb', 'aaa', first.url, second.url), wanted('b.deb', 'bbb', first.url, second.url))
    expect(second.asked).toEqual(['b.deb'])
    expect(told).toEqual(['fetching 2 packages', 'fetched a.deb', 'fetching 1 packages', 'fetched b.deb'])
  })

  test('and the next, for what has that many', async () => {
    const [none, good] = [await mirror({}), await mirror({ 'a.deb': 'aaa' })]
    const { cache, fetch } = await emptyCache()
    await fetch(wanted('a.deb', 'aaa', none.url, none.url, none.url, good.url))
    expect(none.asked).toEqual(['a.deb', 'a.deb', 'a.deb'])
    expect(await cache.has(shaOf('aaa'))).toBe(true)
  })
})

/** Says how much will come, sends a part of it, and hangs up. */
function breakOff(_: IncomingMessage, reply: ServerResponse): void {
  reply.writeHead(200, { 'content-length': '1000' })
  reply.write('aaa', () => reply.destroy())
}

describe('what cannot be had', () => {
  test('is gone when every mirror says so', async () => {
    const [one, other] = [await mirror({ 'b.deb': 'bbb' }), await mirror({})]
    const { cache, dir, fetch } = await emptyCache()
    const error = await failureOf(
      fetch(wanted('a.deb', 'aaa', one.url, other.url), wanted('b.deb', 'bbb', one.url, other.url)),
    )
    expect([error.code, error.message]).toEqual(['PACKAGE_GONE', 'no longer to be had: a.deb'])
    expect(error.details).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/a\.deb: .*\(404\)$/)])
    // What could be had is not fetched again the next time.
    expect(await cache.has(shaOf('bbb'))).toBe(true)
    expect(await keptIn(dir)).toEqual([shaOf('bbb')])
  })

  test('so is a file of this machine that is not there', async () => {
    const { fetch } = await emptyCache()
    const error = await failureOf(fetch(wanted('a.deb', 'aaa', `file://${await temporaryDir()}`)))
    expect([error.code, error.message]).toEqual(['PACKAGE_GONE', 'no longer to be had: a.deb'])
  })

  test('of many the first five are named', async () => {
    const { url } = await mirror({})
    const { fetch } = await emptyCache()
    const items = Array.from({ length: 7 }, (_, at) => wanted(`p${at}.deb`, String(at), url))
    const error = await failureOf(fetch(...items))
    expect(error.message).toBe('no longer to be had: p0.deb, p1.deb, p2.deb, p3.deb, p4.deb and 2 more')
    expect(error.details.length).toBe(5)
  })

  test.each<readonly [string, () => Promise<string>, RegExp]>([
    ['nobody listens', nobody, /^http:\/\/127\.0\.0\.1:\d+\/a\.deb: .*(refused|connect).* \(7\)$/i],
    [
      'the server fails',
      async () => (await mirror({ 'a.deb': (_, reply) => void reply.writeHead(501).end() })).url,
      /: 501 /,
    ],
    ['it breaks off', async () => (await mirror({ 'a.deb': breakOff })).url, /: .*(transfer closed|outstanding)/i],
    [
      'it is something else',
      async () => (await mirror({ 'a.deb': 'evil' })).url,
      new RegExp(`^a\\.deb: has digest ${shaOf('evil')}, expected ${shaOf('aaa')}$`),
    ],
  ])('is a matter of the mirror when %s', async (_, base, detail) => {
    const { dir, fetch } = await emptyCache()
    const error = await failureOf(fetch(wanted('a.deb', 'aaa', await base())))
    expect([error.code, error.message]).toEqual(['MIRROR_UNREACHABLE', 'cannot fetch a.deb'])
    expect(error.details).toEqual([expect.stringMatching(detail)])
    expect(await keptIn(dir)).toEqual([])
  })

  test('is counted', async () => {
    const { fetch } = await emptyCache()
    const base = await nobody()
    const items = ['a', 'b', 'c'].map(name => wanted(name, name, base))
    expect((await failureOf(fetch(...items))).message).toBe('cannot fetch a and 2 more')
  })
})

test('nobody has to wait for a mirror that says nothing', async () => {
  const controller = new AbortController()
  const silent = await mirror({ 'a.deb': () => controller.abort() })
  const { cache, dir } = await emptyCache()
  const work = cache.fetch([wanted('a.deb', 'aaa', silent.url)], () => {}, controller.signal)
  expect((await failureOf(work)).message).toMatch(/was ended by SIGTERM$/)
  expect(await keptIn(dir)).toEqual([])
})

test('a directory of packages under their own names, no byte of which is copied', async () => {
  const server = await mirror({ 'a.deb': 'aaa', 'b.deb': 'bbb' })
  const { cache, fetch } = await emptyCache()
  await fetch(wanted('a.deb', 'aaa', server.url), wanted('b.deb', 'bbb', server.url))
  const dir = join(await temporaryDir(), 'archives/new')
  await utimes(cache.pathOf(shaOf('aaa')), 1000, 1000)
  await cache.linkInto(dir, [
    { sha256: shaOf('aaa'), file: 'a_1.0_amd64.deb' },
    { sha256: shaOf('bbb'), file: 'b.deb' },
  ])
  expect((await readdir(dir)).sort()).toEqual(['a_1.0_amd64.deb', 'b.deb'])
  const [here, there] = [await stat(join(dir, 'a_1.0_amd64.deb')), await stat(cache.pathOf(shaOf('aaa')))]
  expect(here.ino).toBe(there.ino)
  // The time of last use, for who cleans up.
  expect(there.mtimeMs).toBeGreaterThan(1_000_000)
})
