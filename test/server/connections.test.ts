// oxlint-disable-next-line no-restricted-imports -- ten thousand connections need a process of their own
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { follow } from '../../src/api/testing.ts'
import { makeSite, until } from '../../src/control/testing.ts'
import { collect, folder, memoryOf, startMuster } from './muster.ts'

const CONNECTIONS = 10_000
const MEGABYTE = 2 ** 20

describe(`${CONNECTIONS} connections`, () => {
  it('neither stop the server nor fill its memory, and are dropped in the end', { timeout: 120_000 }, async () => {
    await using site = await makeSite()
    await using place = await folder()
    await using server = await startMuster({ site: site.dir, data: join(place.path, 'data') })
    expect((await server.cli('site', 'apply', '--yes')).code).toBe(0)
    const follower = await follow(server.socket, '/api/v1/events/stream?after=0')
    await follower.received(1)

    const program = fileURLToPath(new URL('fixtures/idle-connections.ts', import.meta.url))
    const flood = spawn(
      'sh',
      [
        '-c',
        'ulimit -n 20000; exec "$0" "$@"',
        process.execPath,
        program,
        new URL(server.url).port,
        String(CONNECTIONS),
      ],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    )
    const said = collect(flood)
    const ended = once(flood, 'close')
    try {
      // While they come, while they are there and while they go: root is served.
      const times: number[] = []
      const serve = async (): Promise<void> => {
        const begin = performance.now()
        expect((await server.root('GET', '/api/v1/nodes')).status).toBe(200)
        times.push(performance.now() - begin)
      }
      await until('all connections are open', async () => {
        await serve()
        return said.stdout.includes('opened ')
      })
      expect(Number(/opened (\d+)/.exec(said.stdout)?.[1])).toBe(CONNECTIONS)
      expect((await server.cli('status')).code).toBe(0)
      expect((await server.root('POST', '/api/v1/site/apply', {})).status).toBe(200)
      await until(
        'all connections were dropped, those that trickle too',
        async () => {
          await serve()
          return said.stdout.includes('left 0\n')
        },
        60_000,
      )
      expect(Math.max(...times)).toBeLessThan(5000)
      expect(times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]).toBeLessThan(500)
      expect((await memoryOf(server.pid)).most).toBeLessThan(600 * MEGABYTE)

      flood.stdin.end('close\n')
      expect(await ended).toEqual([0, null])
      expect(said.stderr).toBe('')
      expect((await server.ask('GET', '/healthz')).status).toBe(200)
      expect((await server.ask('GET', '/api/v1/status')).status).toBe(401)
      // Who listened all the while still does.
      expect((await server.cli('token', 'create', 'after')).code).toBe(0)
      expect((await follower.received(2)).at(-1)?.event).toBe('token.created')
    } finally {
      flood.kill('SIGKILL')
    }
    expect(await server.end('SIGTERM')).toEqual({ code: 0, signal: null })
  })
})
