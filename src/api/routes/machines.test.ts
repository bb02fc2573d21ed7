import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodesYaml, operator } from '../../control/testing.ts'
import { AdoptedReply, MachineList, MachineReply, ProblemReply } from '../schemas.ts'
import { type Reply, type TestServer, startTestServer } from '../testing.ts'

const MAC = '52:54:00:aa:bb:cc'
const ID = '525400aabbcc'
const AT = '2026-03-01T12:00:00.000Z'

let server: TestServer
let token: string
/** The revision before the test. */
let seen: number

beforeEach(async () => {
  server = await startTestServer()
  token = await server.token('operator', 'olga')
  await server.control.apply(operator)
  await discover(MAC)
  seen = await server.store.revision()
})
afterEach(() => server[Symbol.asyncDispose]())

/** As a boot server tells of it. */
async function discover(mac: string, facts: object = { serial: 'S1' }): Promise<void> {
  const sighting = { kind: 'machine', at: AT, server: '10.77.0.1', facts: { mac, ...facts } }
  const reply = await server.root('POST', '/api/v1/boot/sightings', { sightings: [sighting], heard: '' })
  expect(reply.status).toBe(204)
}

const ask = (method: string, path: string, body?: unknown): Promise<Reply> => server.ask(method, path, { token, body })
const adopt = (node: string, more: object = {}): Promise<Reply> =>
  ask('POST', `/api/v1/machines/${ID}/adopt`, { node, ...more })
const problem = (reply: Reply): [status: number, code: string, message: string] => {
  const { code, message } = ProblemReply.parse(reply.body)
  return [reply.status, code, message]
}
const head = (): Promise<string> => server.site.git('rev-parse', 'HEAD')
const kinds = async (): Promise<string[]> => (await server.store.events({ after: seen })).map(({ kind }) => kind)

async function change(files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) await server.site.write(path, text)
  await server.site.commit('change')
  await server.control.apply(operator)
  await server.boot.views.refresh()
}

describe('machines that were discovered', () => {
  it('are listed, each with what it said and who it is', async () => {
    await discover('52:54:00:00:00:02', { boot: '0123456789abcdef', disks: [{ name: 'sda', size: 1e12 }] })
    await ask('POST', '/api/v1/places', { places: [{ mac: '52:54:00:00:00:02', switch: 'sw1', port: '2' }] })
    const { items } = MachineList.parse((await ask('GET', '/api/v1/machines')).body)
    expect(items).toEqual([
      {
        id: ID,
        mac: MAC,
        facts: {
          mac: MAC,
          macs: [],
          lldp: [],
          uuid: '',
          serial: 'S1',
          vendor: '',
          product: '',
          cpu: { model: '', count: 0 },
          memory: 0,
          disks: [],
        },
        neighbours: [],
        firstSeen: AT,
        lastSeen: AT,
        server: '10.77.0.1',
        node: null,
      },
      expect.objectContaining({ id: '525400000002', node: 'n002' }),
    ])
    expect((await ask('GET', '/api/v1/machines/525400000002')).body).toEqual(items[1])
  })

  it('can be forgotten', async () => {
    expect((await ask('DELETE', `/api/v1/machines/${ID}`)).status).toBe(204)
    expect((await ask('GET', '/api/v1/machines')).body).toEqual({ items: [] })
    const [event] = await server.store.events({ after: seen })
    expect(event).toMatchObject({ kind: 'machine.forgotten', actor: 'olga', data: { mac: MAC } })
  })

  it.for(['GET', 'DELETE'])('that are not there: %s', async method => {
    expect(problem(await ask(method, '/api/v1/machines/000000000000'))).toEqual([
      404,
      'MACHINE_UNKNOWN',
      'no machine 000000000000 was discovered',
    ])
    for (const id of [MAC, '525400AABBCC', '..', 'x'])
      expect(problem(await ask(method, `/api/v1/machines/${id}`))[1]).toBe('REQUEST_INVALID')
  })
})

describe('adopting a machine', () => {
  it('writes its MAC into the site, which is committed and applied', async () => {
    const before = await head()
    const reply = await adopt('n003')
    const commit = await head()
    expect(AdoptedReply.parse(reply.body)).toEqual({ machine: ID, node: 'n003', commit, generation: 2 })
    expect(await server.site.git('log', '-1', '--format=%an|%s')).toBe(`olga|Adopt ${MAC} as n003`)
    expect(await server.site.git('rev-parse', 'HEAD~')).toBe(before)
    expect(await server.site.git('status', '--porcelain')).toBe('')
    expect(await server.site.git('diff', '--unified=0', before, '--', 'nodes.yaml')).toContain(MAC)
    expect(server.control.desired.get('n003')?.value).toMatchObject({
      interfaces: { prov: { mac: MAC, address: '10.77.1.3' } },
    })
    // The nodes beside it are as they were.
    expect(server.control.desired.get('n002')?.value).toMatchObject({ interfaces: { prov: { address: '10.77.1.2' } } })
    expect(JSON.stringify(server.control.desired.get('n002')?.value)).not.toContain(MAC)
    expect(await kinds()).toEqual(['site.edited', 'site.applied'])
  })

  it('is in force when it is answered', async () => {
    await adopt('n003')
    expect(server.boot.views.index()?.machine(MAC)).toMatchObject({
      node: { name: 'n003' },
      interface: { name: 'prov' },
    })
    expect(MachineReply.parse((await ask('GET', `/api/v1/machines/${ID}`)).body).node).toBe('n003')
  })

  it('is committed with the words that were given', async () => {
    await adopt('n003', { message: 'Rack 4 is back' })
    expect(await server.site.git('log', '-1', '--format=%s')).toBe('Rack 4 is back')
  })

  it('takes the interface that is in the network of the boot servers', async () => {
    const site = await server.site.read('site.yaml')
    await change({
      'site.yaml': site.replace('networks:\n', 'networks:\n  ib: { cidr: 10.78.0.0/16 }\n'),
      'nodes.yaml': `${nodesYaml(3)}n010:
  interfaces:
    ib: { address: 10.78.1.1 }
    boot: { network: prov, address: 10.77.2.1 }
`,
    })
    expect((await adopt('n010')).status).toBe(200)
    expect(server.control.desired.get('n010')?.value).toMatchObject({
      interfaces: { ib: { address: '10.78.1.1' }, boot: { mac: MAC } },
    })
  })

  it('takes the first interface where none is in that network', async () => {
    const site = await server.site.read('site.yaml')
    await change({
      'site.yaml': site.replace('networks:\n', 'networks:\n  ib: { cidr: 10.78.0.0/16 }\n'),
      'nodes.yaml': `${nodesYaml(3)}n010: { interfaces: { ib: { address: 10.78.1.1 } } }\n`,
    })
    expect((await adopt('n010')).status).toBe(200)
    expect(server.control.desired.get('n010')?.value).toMatchObject({ interfaces: { ib: { mac: MAC } } })
  })
})

describe('a machine is not adopted, and nothing is changed', () => {
  it('as a node that is not there', async () => {
    const before = await head()
    expect(problem(await adopt('n999'))).toEqual([404, 'NODE_UNKNOWN', 'no node is named n999'])
    expect(await head()).toBe(before)
    expect(await kinds()).toEqual([])
  })

  it('when it is not known', async () => {
    const reply = await ask('POST', '/api/v1/machines/000000000000/adopt', { node: 'n001' })
    expect(problem(reply)).toEqual([404, 'MACHINE_UNKNOWN', 'no machine 000000000000 was discovered'])
    expect(await kinds()).toEqual([])
  })

  it('when it is a node already', async () => {
    await adopt('n003')
    const before = await head()
    expect(problem(await adopt('n003'))).toEqual([409, 'MACHINE_KNOWN', `${MAC} is n003 already`])
    expect(problem(await adopt('n004'))).toEqual([409, 'MACHINE_KNOWN', `${MAC} is n003 already`])
    expect(await head()).toBe(before)
  })

  it('when it is a node by its place', async () => {
    await ask('POST', '/api/v1/places', { places: [{ mac: MAC, switch: 'sw1', port: '2' }] })
    expect(problem(await adopt('n003'))).toEqual([409, 'MACHINE_KNOWN', `${MAC} is n002 already`])
  })

  it('as a node that has a machine, with what to do about it', async () => {
    await adopt('n003')
    await discover('52:54:00:00:00:02')
    const before = await head()
    const reply = await ask('POST', '/api/v1/machines/525400000002/adopt', { node: 'n003' })
    expect(problem(reply)).toEqual([409, 'NODE_EXISTS', `n003 has a machine already: ${MAC}`])
    expect(ProblemReply.parse(reply.body).hint).toBe('let go of it first: muster node set n003 interfaces.prov.mac=')
    expect(await head()).toBe(before)
  })

  it('as a node without interfaces, with what to do about it', async () => {
    await change({ 'nodes.yaml': `${nodesYaml(3)}n010: {}\n` })
    const before = await head()
    const reply = await adopt('n010')
    expect(problem(reply)).toEqual([400, 'EDIT_INVALID', 'n010 has no interfaces'])
    expect(ProblemReply.parse(reply.body).hint).toBe(
      'give it one: muster node set n010 interfaces.NETWORK.address=ADDRESS',
    )
    expect(await head()).toBe(before)
  })

  it('while the site has changes that nobody committed', async () => {
    await server.site.write('files/motd.j2', 'half a thought\n')
    const before = await head()
    expect(problem(await adopt('n003'))).toEqual([
      409,
      'SITE_DIRTY',
      'the site has changes that are not committed: files/motd.j2',
    ])
    expect(await head()).toBe(before)
    expect(await server.site.git('status', '--porcelain')).toBe(' M files/motd.j2')
    expect(await kinds()).toEqual([])
  })

  it('while what was committed is not valid', async () => {
    await server.site.write('groups/compute.yaml', 'boot: { image: nothing }\n')
    const before = await server.site.commit('wrong')
    expect(problem(await adopt('n003')).slice(0, 2)).toEqual([422, 'SITE_INVALID'])
    expect(await head()).toBe(before)
    expect(await kinds()).toEqual([])
  })

  it('before a site was applied', async () => {
    await using fresh = await startTestServer()
    const sighting = { kind: 'machine', at: AT, server: '10.77.0.1', facts: { mac: MAC } }
    await fresh.root('POST', '/api/v1/boot/sightings', { sightings: [sighting], heard: '' })
    const reply = await fresh.root('POST', `/api/v1/machines/${ID}/adopt`, { node: 'n001' })
    expect(problem(reply)).toEqual([404, 'NODE_UNKNOWN', 'no node is named n001'])
  })

  it.for([{}, { node: '' }, { node: 'n001', more: 1 }, { node: 'n001', message: '' }])('with %j', async body => {
    expect(problem(await ask('POST', `/api/v1/machines/${ID}/adopt`, body)).slice(0, 2)).toEqual([
      400,
      'REQUEST_INVALID',
    ])
    expect(await kinds()).toEqual([])
  })

  it('by two at once', async () => {
    const replies = await Promise.all([adopt('n003'), adopt('n004')])
    const statuses = replies.map(({ status }) => status).sort((a, b) => a - b)
    expect(statuses[0]).toBe(200)
    expect(statuses[1]).toBeGreaterThanOrEqual(400)
    const known = ['n003', 'n004'].filter(name => JSON.stringify(server.control.desired.get(name)?.value).includes(MAC))
    expect(known).toHaveLength(1)
    // What is committed can still be applied.
    expect((await server.control.plan({ allowDirty: false })).diff.nodes).toBe(0)
  })
})
