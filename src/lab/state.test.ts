import { mkdir, mkdtempDisposable, readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { withLabLock } from './lock.ts'
import { planOf } from './plan.ts'
import { bootId } from './processes.ts'
import { type LabState, readState, removeState, writeState } from './state.ts'
import { stateOf } from './status.ts'

const OPTIONS = {
  nodes: [{ name: 'n001', mac: '52:54:00:77:00:01' }],
  firmware: 'uefi',
  addresses: [{ cidr: '10.77.0.1/16' }],
  server: { command: 'muster', args: ['serve'], log: '/srv/lab/server.log' },
} as const

const STATE: LabState = {
  version: 1,
  phase: 'running',
  owner: { pid: 4_000_000, start: '1', boot: bootId() },
  plan: planOf(OPTIONS),
}

describe('the plan of a lab', () => {
  it('fills in what was not said', () => {
    expect(planOf(OPTIONS)).toEqual({
      nodes: [{ name: 'n001', mac: '52:54:00:77:00:01', memory: 1536, cpus: 1 }],
      firmware: 'uefi',
      addresses: [{ cidr: '10.77.0.1/16' }],
      server: { command: 'muster', args: ['serve'], env: {}, log: '/srv/lab/server.log', port: 0 },
    })
  })

  const [node] = OPTIONS.nodes
  test.each([
    [{ nodes: [{ ...node, name: '../n001' }] }, 'is not a node name'],
    [{ nodes: [{ ...node, mac: '53:54:00:77:00:01' }] }, 'is not the MAC address of a machine'],
    [{ nodes: [{ ...node, memory: 1 }] }, 'nodes[0].memory'],
    [{ nodes: [node, { ...node, mac: '52:54:00:77:00:02' }] }, 'two nodes have the name n001'],
    [{ nodes: [node, { ...node, name: 'n002' }] }, 'two nodes have the mac 52:54:00:77:00:01'],
    [{ addresses: [{ cidr: '10.77.0.1' }] }, 'is not an address with its network such as 10.77.0.1/16'],
    [{ addresses: [{ cidr: '10.77.0.1/16 dev lo' }] }, 'is not an address with its network such as 10.77.0.1/16'],
    [{ server: { ...OPTIONS.server, port: 70_000 } }, 'server.port'],
  ])('refuses %j', (change, words) => {
    expect(() => planOf({ ...OPTIONS, ...change })).toThrow(words)
  })
})

describe('the state of a lab', () => {
  it('is what was written last, for our eyes only', async () => {
    await using dir = await mkdtempDisposable(join(tmpdir(), 'muster-state-'))
    expect(await readState(dir.path)).toBeUndefined()
    await writeState(dir.path, STATE)
    await writeState(dir.path, { ...STATE, phase: 'stopping' })
    expect(await readState(dir.path)).toEqual({ ...STATE, phase: 'stopping' })
    expect((await stat(join(dir.path, 'state.json'))).mode & 0o777).toBe(0o600)
  })

  it('goes away with what a killed writer has left, and with nothing else', async () => {
    await using dir = await mkdtempDisposable(join(tmpdir(), 'muster-state-'))
    await writeState(dir.path, STATE)
    for (const name of ['state.json.0123abcd.tmp', 'kvm.json.0123abcd.tmp', 'kvm.json', 'mine.tmp'])
      await writeFile(join(dir.path, name), '')
    await removeState(dir.path)
    expect((await readdir(dir.path)).sort()).toEqual(['kvm.json', 'mine.tmp'])
  })

  it.each(['', '{', '{"version":2}'])('that is %j is damaged', async text => {
    await using dir = await mkdtempDisposable(join(tmpdir(), 'muster-state-'))
    await writeFile(join(dir.path, 'state.json'), text)
    await expect(readState(dir.path)).rejects.toMatchObject({
      code: 'STATE_DAMAGED',
      message: `${dir.path}/state.json cannot be understood`,
      hint: 'clear the lab away with: muster lab down',
    })
  })

  const US = { pid: process.pid, boot: bootId() }
  test.each([
    ['running', STATE.owner, 'up'],
    ['running', { ...STATE.owner, boot: 'before the last start' }, 'interrupted'],
    ['starting', STATE.owner, 'interrupted'],
    ['stopping', STATE.owner, 'interrupted'],
    ['starting', { ...US, start: '1' }, 'interrupted'],
  ] as const)('%s by %j is %s', (phase, owner, state) => {
    expect(stateOf({ ...STATE, phase, owner })).toBe(state)
  })
})

describe('the lock of a lab', () => {
  it('is for one at a time; whoever comes second waits, or is told', async () => {
    await using temporary = await mkdtempDisposable(join(tmpdir(), 'muster-lock-'))
    const dir = join(temporary.path, 'a', 'lab')
    await mkdir(join(temporary.path, 'a'))
    const order: string[] = []
    const [inside, first] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const one = withLabLock(dir, 0, async () => {
      inside.resolve()
      await first.promise
      order.push('one')
    })
    await inside.promise
    await expect(withLabLock(dir, 0, async () => order.push('never'))).rejects.toMatchObject({
      code: 'LAB_BUSY',
      message: `${dir}: another muster is changing this lab`,
    })
    const two = withLabLock(dir, 240_000, async () => order.push('two'))
    first.resolve()
    await Promise.all([one, two])
    expect(order).toEqual(['one', 'two'])
  })
})
