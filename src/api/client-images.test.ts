import { randomBytes } from 'node:crypto'
import { type Server, type Socket, connect, createServer } from 'node:net'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { until } from '../control/testing.ts'
import { makeStore, problems, publishImage } from '../images/store/testing.ts'
import { pullImage, pushImage } from '../images/transfer.ts'
import { RemoteImages } from './client-images.ts'
import { ApiClient } from './client.ts'
import { type TestServer, startTestServer } from './testing.ts'

const MEGABYTE = 2 ** 20

const throughTcp = async (server: TestServer, role: 'viewer' | 'operator'): Promise<RemoteImages> =>
  new RemoteImages(new ApiClient({ server: server.url, token: await server.token(role) }))
const throughSocket = (server: TestServer): RemoteImages => new RemoteImages(new ApiClient({ server: server.socket }))

/** Passes everything on, but ends each connection once so many bytes came back through it. */
async function flaky(
  port: number,
  bytes: number,
): Promise<{ url: string; connections: () => number } & AsyncDisposable> {
  const open = new Set<Socket>()
  let connections = 0
  const proxy: Server = createServer(client => {
    connections++
    const upstream = connect(port, '127.0.0.1')
    let passed = 0
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => {}).once('close', () => open.delete(socket))
    }
    client.on('data', chunk => upstream.write(chunk)).once('close', () => upstream.destroy())
    upstream.once('close', () => client.destroy())
    upstream.on('data', chunk => {
      passed += chunk.length
      if (passed <= bytes) client.write(chunk)
      else client.write(chunk.subarray(0, chunk.length - (passed - bytes)), () => client.resetAndDestroy())
    })
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const { port: own } = proxy.address() as { port: number }
  return {
    url: `http://127.0.0.1:${own}`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise(resolve => proxy.close(resolve))
    },
  }
}

describe('an image', () => {
  it('goes to a server and comes back, the same to the byte', async () => {
    await using server = await startTestServer()
    await using mine = await makeStore()
    await using other = await makeStore()
    const contents = { kernel: randomBytes(MEGABYTE), squashfs: randomBytes(5 * MEGABYTE), initrd: '', log: 'ok' }
    const { digest } = await publishImage(mine.store, 'compute', contents)

    const pushed = await pushImage(await throughTcp(server, 'operator'), mine.store, 'compute')
    expect(pushed).toEqual({ name: 'compute', digest, blobs: 4, bytes: 6 * MEGABYTE + 2 })
    expect(await problems(server.images)).toEqual([])
    expect(await pushImage(throughSocket(server), mine.store, 'compute')).toMatchObject({ blobs: 0 })

    const pulled = await pullImage(throughSocket(server), other.store, digest.slice(0, 20))
    expect(pulled).toEqual({ name: 'compute', digest, blobs: 4, bytes: 6 * MEGABYTE + 2 })
    expect(await problems(other.store)).toEqual([])
    expect(await other.store.resolve('compute')).toEqual(await mine.store.resolve('compute'))
    const kinds = (await server.store.events()).map(event => event.kind)
    expect(kinds).toEqual([
      'token.created',
      ...Array.from({ length: 4 }, () => 'blob.stored'),
      'image.published',
      'image.published',
    ])
  })

  it('can be pulled by a viewer, and pushed by an operator only', async () => {
    await using server = await startTestServer()
    await using mine = await makeStore()
    await publishImage(server.images, 'login', { squashfs: 'root' })
    await publishImage(mine.store, 'compute', { squashfs: 'root' })
    const viewer = await throughTcp(server, 'viewer')
    expect(await pullImage(viewer, mine.store, 'login')).toMatchObject({ name: 'login', blobs: 0 })
    await expect(pushImage(viewer, mine.store, 'compute')).rejects.toMatchObject({ code: 'FORBIDDEN' })
    expect(await server.images.names()).toEqual(['login'])
  })

  it('comes through a connection that breaks all the time', async () => {
    await using server = await startTestServer()
    await using mine = await makeStore()
    const contents = { squashfs: randomBytes(3 * MEGABYTE), kernel: randomBytes(MEGABYTE) }
    await publishImage(server.images, 'compute', contents)
    await using proxy = await flaky(Number(new URL(server.url).port), MEGABYTE / 2)
    const client = new ApiClient({ server: proxy.url, token: await server.token('viewer') })
    await pullImage(new RemoteImages(client), mine.store, 'compute')
    expect(await problems(mine.store)).toEqual([])
    expect(proxy.connections()).toBeGreaterThan(8)
  })

  it('that the server does not take is not sent to its end, and the reason is told', async () => {
    await using server = await startTestServer({ maxBlob: MEGABYTE })
    await using mine = await makeStore()
    await publishImage(mine.store, 'compute', { squashfs: randomBytes(40 * MEGABYTE) })
    let sent = 0
    const progress = (done: number): number => (sent = done)
    await expect(
      pushImage(await throughTcp(server, 'operator'), mine.store, 'compute', { progress }),
    ).rejects.toMatchObject({ code: 'BODY_TOO_LARGE', message: 'a blob may have 1048576 bytes' })
    expect(sent).toBeLessThan(40 * MEGABYTE)
    expect(await server.images.names()).toEqual([])
  })

  it('on its way leaves nothing on a server when its sender is interrupted', async () => {
    await using server = await startTestServer()
    await using mine = await makeStore()
    await publishImage(mine.store, 'compute', { squashfs: randomBytes(40 * MEGABYTE) })
    const interrupt = new AbortController()
    const progress = (done: number): void => {
      if (done > MEGABYTE) interrupt.abort()
    }
    const pushing = pushImage(throughSocket(server), mine.store, 'compute', { progress, signal: interrupt.signal })
    await expect(pushing).rejects.toMatchObject({ code: 'ABORTED' })
    const temporary = join(server.images.dir, 'tmp')
    await until('nothing is left of it', async () => (await readdir(temporary)).length === 0)
    expect(await server.images.names()).toEqual([])
  })

  it('is not looked for where no server is', async () => {
    await using mine = await makeStore()
    await publishImage(mine.store, 'compute', { squashfs: 'root' })
    const nobody = new RemoteImages(new ApiClient({ server: '/nonexistent/muster.sock' }))
    await expect(pushImage(nobody, mine.store, 'compute')).rejects.toMatchObject({ code: 'SERVER_UNREACHABLE' })
    await expect(pullImage(nobody, mine.store, 'compute')).rejects.toMatchObject({ code: 'SERVER_UNREACHABLE' })
  })
})
