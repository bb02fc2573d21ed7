import { access, link, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { type Socket, connect, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { operator } from '../control/testing.ts'
import { exec } from '../lib/exec.ts'
import { Tokens } from '../control/tokens.ts'
import { type RunningServer, buildApi, startServer } from './server.ts'
import { type TestServer, dial, request, startTestServer } from './testing.ts'

const SECONDS = 8

/** Closes the server; how long that took, or 'never'. Whatever holds it up is cut off afterwards, so that the test ends. */
async function closing(server: TestServer, ...clients: Socket[]): Promise<'in time' | 'never'> {
  const late = new Promise<'never'>(resolve => setTimeout(resolve, SECONDS * 1000, 'never').unref())
  const outcome = await Promise.race([server.server.close().then(() => 'in time' as const), late])
  for (const client of clients) client.destroy()
  return outcome
}

const local = async (server: TestServer): Promise<Socket> => {
  const socket = connect(server.socket)
  await new Promise(resolve => socket.once('connect', resolve))
  return socket
}

/** Waits until the server has said something. */
const answered = (socket: Socket): Promise<string> =>
  new Promise(resolve => socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1'))))

describe('closing a server', () => {
  it('frees the port and takes the socket away', async () => {
    await using server = await startTestServer()
    const { port } = new URL(server.url)
    expect(await closing(server)).toBe('in time')
    await expect(dial(Number(port))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await expect(access(server.socket)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('ends the streams properly', async () => {
    await using server = await startTestServer()
    const followers = await Promise.all([
      server.follow('/api/v1/events/stream'),
      server.follow('/api/v1/events/stream'),
    ])
    expect(await closing(server)).toBe('in time')
    expect(await Promise.all(followers.map(follower => follower.ended))).toEqual([true, true])
  })

  it.for([
    ['is silent', ''],
    ['has said half a request', 'GET /healthz HTTP/1.1\r\nHo'],
    [
      'has sent half a body',
      'POST /api/v1/site/apply HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    ],
  ] as const)('does not wait for a client that %s', async ([, text]) => {
    await using server = await startTestServer()
    const clients = [await server.dial(), await local(server)]
    for (const client of clients) {
      client.on('error', () => {})
      client.write(text)
    }
    // Once this is answered the server has seen the others, too.
    expect((await server.ask('GET', '/healthz')).status).toBe(200)
    expect((await server.root('GET', '/healthz')).status).toBe(200)
    expect(await closing(server, ...clients)).toBe('in time')
  })

  it('does not wait for a client that keeps its connection for later', async () => {
    await using server = await startTestServer()
    const clients = [await server.dial(), await local(server)]
    for (const client of clients) {
      const reply = answered(client)
      client.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
      expect(await reply).toContain('200 OK')
    }
    expect(await closing(server, ...clients)).toBe('in time')
  })

  it('does not wait for a follower that stopped reading', async () => {
    await using server = await startTestServer()
    const client = await local(server)
    client.on('error', () => {})
    client.pause()
    client.write('GET /api/v1/events/stream?after=0 HTTP/1.1\r\nHost: x\r\n\r\n')
    for (let count = 0; count < 20; count++)
      await server.store.commit([], [{ kind: 'test.big', actor: 'test', data: 'x'.repeat(1_000_000) }])
    expect((await server.root('GET', '/healthz')).status).toBe(200)
    expect(await closing(server, client)).toBe('in time')
  })

  it('finishes what is under way', async () => {
    await using server = await startTestServer()
    const client = await local(server)
    const begun = answered(client)
    client.write(
      'POST /api/v1/site/apply HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
    )
    expect(await begun).toContain('100 Continue')
    const reply = answered(client)
    const closed = closing(server, client)
    client.write('{}')
    expect(await reply).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(await closed).toBe('in time')
    expect(server.control.desired.nodes.size).toBe(4)
  })
})

describe('a slow client', () => {
  it('has no more time and no more connections with TLS than without', async () => {
    await using server = await startTestServer()
    const { store, control, tokens, images, channels, boot, data } = server
    const [cert, key] = [`${data}/cert.pem`, `${data}/key.pem`]
    const how = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=muster'
    await exec('openssl', [...how.split(' '), '-keyout', key, '-out', cert])
    const limitsOf = async (tls?: { cert: Buffer; key: Buffer }) => {
      const context = {
        version: 'x',
        store,
        control,
        tokens,
        images,
        channels,
        ...boot,
        stopping: new AbortController().signal,
      }
      const app = await buildApi(context, tls === undefined ? {} : { tls }, () => false)
      const { headersTimeout, requestTimeout, keepAliveTimeout, maxConnections } = app.server
      await app.close()
      return { headersTimeout, requestTimeout, keepAliveTimeout, maxConnections }
    }
    expect(await limitsOf({ cert: await readFile(cert), key: await readFile(key) })).toEqual(await limitsOf())
  })
})

/** Another server on the same state and the same socket. */
const again = async (server: TestServer): Promise<RunningServer> => {
  const { store, control, images, channels, boot } = server
  const tokens = await Tokens.load(store)
  return startServer(
    { version: 'x', store, control, tokens, images, channels, ...boot },
    { host: '127.0.0.1', port: 0, socket: server.socket },
  )
}

describe('the unix socket', () => {
  it('is for its owner only', async () => {
    await using server = await startTestServer()
    expect(((await stat(server.socket)).mode & 0o7777).toString(8)).toBe('600')
  })

  it('that somebody answers on is left alone', async () => {
    await using server = await startTestServer()
    await server.control.apply(operator)
    const umask = process.umask()
    await expect(again(server)).rejects.toMatchObject({
      code: 'STATE_LOCKED',
      message: `another muster listens on ${server.socket}`,
    })
    expect(process.umask()).toBe(umask)
    expect((await server.root('GET', '/api/v1/nodes/n001')).status).toBe(200)
  })

  it('that was left behind is replaced', async () => {
    await using server = await startTestServer()
    await server.server.close()
    // A socket nobody listens on any more: what a killed server leaves.
    await leaveStale(server.socket)
    expect((await stat(server.socket)).isSocket()).toBe(true)
    const fresh = await again(server)
    expect((await request({ socketPath: server.socket }, 'GET', '/api/v1/status')).status).toBe(200)
    await fresh.close()
  })

  it('does not take the place of a file that is no socket', async () => {
    await using server = await startTestServer()
    await server.server.close()
    await writeFile(server.socket, 'precious')
    await again(server).then(
      fresh => fresh.close(),
      () => {},
    )
    expect(
      await stat(server.socket).then(
        found => found.isFile() && found.size,
        () => 'gone',
      ),
    ).toBe('precious'.length)
  })
})

async function leaveStale(path: string): Promise<void> {
  const listener = createServer()
  await new Promise<void>(resolve => listener.listen(path, resolve))
  await link(path, `${path}.kept`)
  // Closing takes the name away; the other name stays.
  await new Promise(resolve => listener.close(resolve))
  await rename(`${path}.kept`, path)
}
