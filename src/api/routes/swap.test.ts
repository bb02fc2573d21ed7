import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { operator } from '../../control/testing.ts'
import { MachineList, NodeDetail, ProblemReply, SwapReply } from '../schemas.ts'
import { type Reply, type TestServer, startTestServer } from '../testing.ts'

const [A, B, C] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b', '52:54:00:00:00:0c']

let server: TestServer
let token: string
beforeEach(async () => {
  server = await startTestServer()
  token = await server.token('operator', 'olga')
  await server.control.apply(operator)
})
afterEach(() => server[Symbol.asyncDispose]())

const ask = (method: string, path: string, body?: unknown): Promise<Reply> => server.ask(method, path, { token, body })
const put = (mac: string, port: string): Promise<Reply> =>
  ask('POST', '/api/v1/places', { places: [{ mac, switch: 'sw1', port }] })
const nameOf = (mac: string): string | undefined => server.boot.views.index()?.machine(mac)?.node.name
const problem = (reply: Reply): [status: number, code: string, message: string] => {
  const { code, message } = ProblemReply.parse(reply.body)
  return [reply.status, code, message]
}
const tell = async (sighting: object, heard = ''): Promise<void> => {
  const told = { at: new Date().toISOString(), server: '10.77.0.1', ...sighting }
  expect((await ask('POST', '/api/v1/boot/sightings', { sightings: [told], heard })).status).toBe(204)
}
const up = (node: string, mac: string): Promise<void> =>
  tell({ kind: 'phase', mac, node, boot: 'aaaaaaaaaaaaaaaa', phase: 'ready' }, node)
const notes = async (): Promise<Record<string, string | undefined>> => {
  const { items } = MachineList.parse((await ask('GET', '/api/v1/machines')).body)
  return Object.fromEntries(items.map(({ mac, node, note }) => [`${mac} ${node ?? '-'}`, note]))
}

describe('nodes that change machines', () => {
  beforeEach(async () => {
    await put(A, '1')
    await put(B, '2')
  })

  it('do so at once where no machine is up, and it is said wherever one asks', async () => {
    const reply = SwapReply.parse((await ask('POST', '/api/v1/nodes/n001/swap', { with: 'n002', why: 'fan' })).body)
    expect(reply).toEqual({
      node: 'n001',
      with: 'n002',
      by: 'olga',
      at: expect.any(String) as string,
      why: 'fan',
      isActive: true,
      running: [],
    })
    expect([nameOf(A), nameOf(B)]).toEqual(['n002', 'n001'])
    expect(NodeDetail.parse((await ask('GET', '/api/v1/nodes/n002')).body).swap).toEqual(reply)
    const { body } = await ask('GET', '/api/v1/nodes/n001/boot')
    expect(JSON.stringify(body)).toContain(
      `${B} is plugged in at sw1 2, the place of n002, but olga swapped n001 and n002 at ${reply.at}: fan`,
    )
    expect(await server.site.git('status', '--porcelain')).toBe('')
  })

  it('do so when a machine that was up boots; until then the other waits', async () => {
    await up('n002', B)
    await ask('POST', '/api/v1/nodes/n001/swap', { with: 'n002' })
    expect([nameOf(A), nameOf(B)]).toEqual([undefined, 'n002'])
    expect((await notes())[`${A} -`]).toBe(`waits: n002 is ${B}`)
    await tell({ kind: 'phase', mac: B, node: 'n002', phase: 'dhcp' })
    await server.boot.views.refresh()
    expect([nameOf(A), nameOf(B)]).toEqual(['n002', 'n001'])
  })

  it('have their own again when it is taken back', async () => {
    await ask('POST', '/api/v1/nodes/n001/swap', { with: 'n002' })
    expect((await ask('DELETE', '/api/v1/nodes/n002/swap')).body).toEqual({ swap: null })
    expect([nameOf(A), nameOf(B)]).toEqual(['n001', 'n002'])
    expect(NodeDetail.parse((await ask('GET', '/api/v1/nodes/n002')).body).swap).toBeUndefined()
  })

  it('have to be there, and free', async () => {
    expect(problem(await ask('POST', '/api/v1/nodes/n001/swap', { with: 'n999' }))).toEqual([
      404,
      'NODE_UNKNOWN',
      'no node is named n999',
    ])
    await ask('POST', '/api/v1/nodes/n001/swap', { with: 'n002' })
    expect(problem(await ask('POST', '/api/v1/nodes/n003/swap', { with: 'n002' }))).toEqual([
      409,
      'SWAP_REFUSED',
      'n002 has changed machines with n001 already',
    ])
    expect(problem(await ask('DELETE', '/api/v1/nodes/n003/swap'))).toEqual([
      409,
      'SWAP_REFUSED',
      'n003 has not changed machines with another node',
    ])
  })
})

describe('machines with something unusual about them', () => {
  it('are listed with what it is', async () => {
    await put(A, '1')
    await up('n001', A)
    await put(B, '1')
    await put(C, '77')
    expect(await notes()).toEqual({
      [`${A} n001`]: undefined,
      [`${B} -`]: `waits: n001 is ${A}`,
      [`${C} -`]: 'no node is at sw1 77',
    })
    await put(C, '2')
    expect((await notes())[`${C} n002`]).toBe('moved from sw1 77')
    const conflicts = await server.store.events({ after: 0, kind: 'node.place.conflict' })
    expect(conflicts.map(({ nodes, actor, data }) => [nodes, actor, data])).toEqual([
      ['n001', 'olga', { mac: B, place: 'sw1 1', source: 'operator', holder: A }],
    ])
  })

  it('include those that only a switch has told of', async () => {
    const site = await server.site.read('site.yaml')
    await server.site.write('site.yaml', `${site}switches: { sw1: { circuit: linux, relay: 10.78.0.254 } }\n`)
    await server.site.commit('option 82')
    await server.control.apply(operator)
    await server.boot.views.refresh()
    const circuit = Buffer.from('3').toString('hex')
    await tell({ kind: 'relayed', mac: A, circuit, relay: '10.78.0.254' })
    await server.boot.views.refresh()
    const { items } = MachineList.parse((await ask('GET', '/api/v1/machines')).body)
    expect(items).toMatchObject([{ mac: A, node: 'n003', place: { switch: 'sw1', port: '3', source: 'option 82' } }])
    expect(nameOf(A)).toBe('n003')
  })
})
