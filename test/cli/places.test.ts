import { expect, test } from 'vitest'
import { startTestServer } from '../../src/api/testing.ts'
import { run } from '../../src/cli/testing.ts'
import { operator } from '../../src/control/testing.ts'

const [A, B, C] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b', '52:54:00:00:00:0c']

/** n001 runs on A, at its place; B and C wait, or are nowhere. */
async function world() {
  const server = await startTestServer()
  await server.control.apply(operator)
  const put = (mac: string, port: string) =>
    server.root('POST', '/api/v1/places', { places: [{ mac, switch: 'sw1', port }] })
  await put(A, '1')
  const ready = {
    kind: 'phase',
    at: new Date().toISOString(),
    server: '10.77.0.1',
    mac: A,
    node: 'n001',
    phase: 'ready',
  }
  await server.root('POST', '/api/v1/boot/sightings', {
    sightings: [{ ...ready, boot: 'aaaaaaaaaaaaaaaa' }],
    heard: 'n001',
  })
  await put(B, '1')
  await put(C, '77')
  return server
}

test('machines with something unusual about them are listed, with what it is', async () => {
  await using server = await world()
  const listed = async (...more: string[]): Promise<string[]> => {
    const { stdout } = await run(['discover', 'ls', ...more, '--server', server.socket])
    return stdout.split('\n').map(line => line.trim().replaceAll(/ {2,}/g, ' '))
  }
  expect((await listed()).slice(0, 3)).toEqual([
    'ID MAC PLACE MACHINE SERIAL CPUS MEMORY DISKS BMC NODE SEEN NOTE',
    expect.stringMatching(`^52540000000b ${B} sw1 1 - - - - - - - \\S+ ago waits: n001 is ${A}$`),
    expect.stringMatching(`^52540000000c ${C} sw1 77 - - - - - - - \\S+ ago no node is at sw1 77$`),
  ])
  expect((await listed('--all'))[1]).toMatch(`52540000000a ${A} sw1 1 - - - - - - n001 `)
})

test('a node moves to the machine of another, and back', async () => {
  await using server = await world()
  const muster = (...words: string[]) => run([...words, '--server', server.socket])
  const done = await muster('node', 'swap', 'n001', 'n002', '--why', 'memory errors')
  expect(done.stdout.split('\n').slice(0, 3)).toEqual([
    expect.stringMatching(/^n001 and n002 have changed machines: \S+, \S+Z: memory errors$/),
    `  ${A} runs as n001 until it boots`,
    'to take it back: muster node swap n001 --undo',
  ])
  expect((await muster('node', 'show', 'n002')).stdout).toContain('n001 and n002 have changed machines: ')
  expect((await muster('node', 'swap', 'n003', 'n001')).stderr).toContain('n001 has changed machines with n002 already')
  expect((await muster('node', 'swap', 'n001', '--undo')).stdout).toBe('n001 has its own machine again\n')
})

test.for<[words: string[], message: string]>([
  [['n001'], 'say which node it changes machines with'],
  [['n001', 'n002', '--undo'], '--undo needs only one of the two nodes'],
])('what is said wrongly is explained: %j', async ([words, message]) => {
  await using server = await startTestServer()
  const { stderr, status } = await run(['node', 'swap', ...words, '--server', server.socket])
  expect([status, stderr.includes(message)]).toEqual([2, true])
})
