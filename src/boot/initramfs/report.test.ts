import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Behaviour, MisbehavingServer } from './misbehaving-server.ts'
import { Bench, SHELLS } from './testing.ts'

interface Reports extends AsyncDisposable {
  readonly url: string
  readonly received: { readonly path: string; readonly type: string; readonly body: unknown }[]
}

async function reports(): Promise<Reports> {
  const received: Reports['received'] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString('latin1')))
    request.on('end', () => {
      received.push({ path: request.url ?? '', type: request.headers['content-type'] ?? '', body: JSON.parse(body) })
      response.writeHead(204).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    [Symbol.asyncDispose]: () => new Promise(resolve => void server.close(() => resolve())),
  }
}

describe.concurrent.each(SHELLS)('reports to the servers, by %s', shell => {
  const run = async (servers: readonly string[], commands: string): Promise<string> => {
    await using bench = await Bench.create(shell)
    const plan = `forget_plan; plan_servers=${servers.join(',')} plan_boot=0123456789abcdef plan_mac=52:54:00:12:34:56`
    const clock = 'PROC=$WORK; echo 52:54:00:12:34:56 >"$WORK/online"; echo "20.50 0" >"$WORK/uptime"'
    return (await bench.run('lib patience plan report', `${plan}\n${clock}\n${commands}`)).output
  }

  test('the first two phases, with how long ago they began', async () => {
    await using server = await reports()
    await run([server.url], 'report_begin 320; wait')
    const common = { boot: '0123456789abcdef', mac: '52:54:00:12:34:56' }
    expect(server.received).toEqual([
      { path: '/node/report', type: 'application/json', body: { ...common, phase: 'initrd', ago: 17.3 } },
      { path: '/node/report', type: 'application/json', body: { ...common, phase: 'fetch', ago: 0 } },
    ])
  })

  test('a failure with its reason, whatever that is made of', async () => {
    await using server = await reports()
    await run([server.url], `report_failure 'he said "no" \\ and $(left)'`)
    expect(server.received.map(({ body }) => body)).toEqual([
      {
        boot: '0123456789abcdef',
        mac: '52:54:00:12:34:56',
        phase: 'failed',
        ago: 0,
        detail: 'he said "no" \\ and $(left)',
      },
    ])
  })

  test.each<[Behaviour]>([['error'], ['silent']])(
    'to the next server when one is %s, and to that first from then on',
    async how => {
      await using bad = await MisbehavingServer.start(Buffer.alloc(0), how)
      await using good = await reports()
      await run([bad.url, good.url], 'ANSWER_WITHIN=5; report_failure one; ANSWER_WITHIN=60; report_failure two')
      expect(good.received).toHaveLength(2)
      expect(bad.requests).toHaveLength(1)
    },
  )

  test('nobody to report to is no reason to fail', async () => {
    const gone = await MisbehavingServer.start(Buffer.alloc(0))
    await gone[Symbol.asyncDispose]()
    expect(await run([gone.url], 'PROC=/proc; first_reports=; report_failure x; report_root; echo went on')).toBe(
      'went on\n',
    )
  })

  test('nothing is sent before there is a network', async () => {
    await using server = await reports()
    expect(await run([server.url], 'rm "$WORK/online"; report_failure x; echo went on')).toBe('went on\n')
    expect(server.received).toEqual([])
  })
})
