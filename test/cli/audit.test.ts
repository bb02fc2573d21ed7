import { expect, test } from 'vitest'
import { startTestServer } from '../../src/api/testing.ts'
import { run } from '../../src/cli/testing.ts'
import { operator } from '../../src/control/testing.ts'
import { report } from '../../src/state/observed.ts'

test('what people changed is found, however much else happened since', async () => {
  await using server = await startTestServer()
  await server.control.apply(operator)
  await server.root('POST', '/api/v1/tokens', { name: 'grafana', role: 'viewer', seconds: 60 })
  for (let turn = 0; turn < 30; turn++) {
    const value = turn % 2 === 0 ? 'on' : 'off'
    await report(server.store, 'n001', { power: { value } }, { actor: 'bmc' }, new Date())
  }

  const audit = async (limit: string): Promise<string[]> => {
    const { stdout } = await run(['audit', '-n', limit, '--json', '--server', server.socket])
    return (JSON.parse(stdout) as { kind: string }[]).map(event => event.kind)
  }
  expect(await audit('1')).toEqual(['token.created'])
  expect(await audit('2')).toEqual(['token.created', 'site.applied'])
  expect(await audit('50')).toEqual(['token.created', 'site.applied'])
})
