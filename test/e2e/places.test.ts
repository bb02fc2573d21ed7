/** Machines that nobody has written down: what they become follows from the port of the switch they are plugged into. */
import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BootReply, EventReply } from '../../src/api/schemas.ts'
import { labMac } from '../../src/lab/simulated/simulate.ts'
import { exec } from '../../src/lib/exec.ts'
import { startProgram } from '../../src/lib/program.ts'
import { type Cluster, type MachineReply, commit, makeCluster, phasesOf, talkingSwitch } from './testing.ts'

const SWITCH = '10.77.0.253'
const MACHINES = ['stranger1', 'stranger2', 'stranger3'] as const
const [FIRST, SECOND, THIRD] = MACHINES.map(labMac) as [string, string, string]

let cluster: Cluster
const stack = new AsyncDisposableStack()
afterAll(() => stack.disposeAsync())

/** One switch adds option 82, of the other nothing is known but what it says over LLDP; a node at a port of each. */
beforeAll(async () => {
  cluster = stack.use(await makeCluster())
  const { site } = cluster
  await appendFile(join(site, 'site.yaml'), `switches: { rack1: { circuit: linux, relay: ${SWITCH} } }\n`)
  await appendFile(
    join(site, 'nodes.yaml'),
    `n009:
  location: { switch: rack1, port: stranger1 }
  interfaces: { prov: { address: 10.77.1.9 } }
n010:
  location: { switch: rack2, port: stranger2 }
  interfaces: { prov: { address: 10.77.1.10 } }
`,
  )
  await commit(site, 'Two nodes that are known by their place')
})

/**
 * The switch relays what a machine asks at this port, as real ones do: it floods requests neither from there nor to there.
 * Its address is that of the port, too (`ip unnumbered`). dhcrelay hears what comes in before a filter drops it, and not
 * what a filter drops on its way out.
 */
async function relayingPort(port: string): Promise<AsyncDisposable> {
  const { switch: namespace } = cluster.lab.names
  const batch = (tool: 'ip' | 'tc', lines: readonly string[]): Promise<unknown> =>
    exec(tool, ['-n', namespace, '-batch', '-'], { input: lines.map(line => `${line}\n`).join('') })
  await batch('ip', [`address add ${SWITCH}/16 dev _bridge`, `address add ${SWITCH}/32 dev ${port}`])
  const { stdout } = await exec('tcpdump', ['-y', 'EN10MB', '-ddd', 'ether broadcast and udp dst port 67'])
  // A filter says how many bytes to keep of what it finds; here it is to say TC_ACT_SHOT.
  const program = stdout.toString('utf8').trim().replaceAll('\n', ',').replace('6 0 0 262144', '6 0 0 2')
  const filter = (way: string): string =>
    `filter add dev ${port} ${way} protocol all bpf direct-action bytecode "${program}"`
  await batch('tc', [`qdisc add dev ${port} clsact`, ...['ingress', 'egress'].map(filter)])
  const { promise: isListening, resolve: listening } = Promise.withResolvers<void>()
  const relay = ['dhcrelay', '-4', '-d', '-a', '-iu', '_bridge', '-id', port, '10.77.0.1']
  const running = await startProgram('ip', ['netns', 'exec', namespace, ...relay], {
    onLine: line => void (line.startsWith('Sending on') && listening()),
  })
  await isListening
  return running
}

/** The newest boot of a node that is on this machine, and ready. */
const readyOn = (node: string, mac: string, before?: BootReply): Promise<BootReply> =>
  cluster.boot(node, boot => boot.mac === mac && boot.id !== before?.id && boot.phases.at(-1)?.phase === 'ready')

/** The name that a machine has given itself last, once it is that. */
const isCalled = (machine: string, name: string): Promise<true> =>
  cluster.until(`${machine} calls itself ${name}`, async () => {
    const names = [...(await cluster.console(machine)).matchAll(/muster-agent: \{"hostname":"([^"]*)"/g)]
    return names.at(-1)?.[1] === name || undefined
  })

const machineOf = async (mac: string): Promise<MachineReply | undefined> =>
  (await cluster.client.get<{ items: MachineReply[] }>('/api/v1/machines')).items.find(one => one.mac === mac)

const events = async (kind: string, nodes: string): Promise<EventReply[]> => {
  const { items } = await cluster.client.get<{ items: EventReply[] }>('/api/v1/events', { kind })
  return items.filter(event => event.nodes === nodes)
}
const eventOf = (kind: string, nodes: string): Promise<EventReply> =>
  cluster.until(`${kind} of ${nodes}`, async () => (await events(kind, nodes))[0])

/** Machines are switched off, and it is noticed that the nodes they ran as are silent. */
async function switchOff(running: Readonly<Record<string, string>>): Promise<void> {
  const silences = (): Promise<number[]> =>
    Promise.all(Object.values(running).map(async node => (await events('node.silent', node)).length))
  const before = await silences()
  await cluster.lab.power(Object.keys(running), 'off')
  await cluster.until('all are silent', async () => {
    const after = await silences()
    return after.every((count, index) => count > (before[index] ?? 0)) || undefined
  })
}

const said = async (words: string): Promise<string> => {
  const ran = await cluster.muster(words)
  expect(ran).toMatchObject({ status: 0 })
  return ran.stdout
}

describe('a machine that nobody knows', () => {
  it('is the node of its port, which a relay says with option 82', async () => {
    const { lab } = cluster
    expect(await cluster.up('--nodes 0 --strangers 3 --no-wait')).toMatchObject({ status: 0 })
    await lab.power(MACHINES, 'off')
    stack.use(await relayingPort('stranger1'))
    stack.use(await talkingSwitch(lab, 'rack2', 'stranger2'))
    // Both at once, for the next test as well.
    await lab.power(['stranger1', 'stranger2'], 'on')
    const boot = await readyOn('n009', FIRST)
    expect(phasesOf(boot).slice(-4)).toEqual(['fetch', 'root', 'agent', 'ready'])
    await isCalled('stranger1', 'n009')
    expect(await cluster.console('stranger1')).toContain('"addresses":["10.77.1.9/16"')
    expect(await machineOf(FIRST)).toMatchObject({
      node: 'n009',
      place: { switch: 'rack1', port: 'stranger1', source: 'option 82' },
    })
    expect(await said('boot explain n009')).toContain(`${FIRST} is plugged in at rack1 stranger1, the place of n009`)
  })

  it('is the node of its port, which the discovery system hears over LLDP', async () => {
    const boot = await readyOn('n010', SECOND)
    // Without another start: it never asked for a script of n010.
    expect(phasesOf(boot)).toEqual(['initrd', 'fetch', 'root', 'agent', 'ready'])
    await isCalled('stranger2', 'n010')
    expect(await machineOf(SECOND)).toMatchObject({
      node: 'n010',
      place: { switch: 'rack2', port: 'stranger2', source: 'LLDP' },
    })
  })

  it('is written down nowhere', async () => {
    const nodes = await readFile(join(cluster.site, 'nodes.yaml'), 'utf8')
    expect([FIRST, SECOND].filter(mac => nodes.includes(mac))).toEqual([])
    expect(await said('discover ls')).toContain('no unknown machines')
  })
})

describe('two nodes that swap their machines', () => {
  let own: BootReply

  it('are each the other from the next boot on', async () => {
    own = await readyOn('n009', FIRST)
    expect(await said('node swap n009 n010 --why memory')).toContain(`${FIRST} runs as n009 until it boots`)
    await cluster.lab.power(['stranger1', 'stranger2'], 'cycle')
    await Promise.all([readyOn('n010', FIRST), readyOn('n009', SECOND)])
    await Promise.all([isCalled('stranger1', 'n010'), isCalled('stranger2', 'n009')])
    const because = 'is plugged in at rack2 stranger2, the place of n010, but root swapped n009 and n010'
    expect(await said('boot explain n009')).toMatch(new RegExp(`${SECOND} ${because} at \\S+: memory`))
  })

  it('have their own again when it is taken back', async () => {
    expect(await said('node swap n009 --undo')).toContain('n009 and n010 get their own machines back')
    await cluster.lab.power(['stranger1', 'stranger2'], 'cycle')
    await readyOn('n009', FIRST, own)
    await isCalled('stranger1', 'n009')
    expect(await said('boot explain n009')).not.toContain('swapped')
  })
})

describe('a machine that claims the place of a node', () => {
  it('waits while that is up, and the node stays what it is', async () => {
    const { lab } = cluster
    const before = await cluster.ready('n009')
    stack.use(await talkingSwitch(lab, 'rack1', 'stranger3', 'stranger1'))
    await lab.power(['stranger3'], 'on')
    expect(await eventOf('node.place.conflict', 'n009')).toMatchObject({
      data: { mac: THIRD, place: 'rack1 stranger1', source: 'LLDP', holder: FIRST },
    })
    const waits = `waits: n009 is ${FIRST}`
    const machine = await cluster.until('it is noted', async () => {
      const found = await machineOf(THIRD)
      return found?.note === undefined ? undefined : found
    })
    expect(machine).toMatchObject({ node: null, note: waits, facts: { serial: 'LAB-stranger3' } })
    expect(await said('discover ls')).toMatch(new RegExp(`${THIRD} .* ${waits}`))
    expect(await said('boot explain n009')).toContain(`${FIRST} is plugged in at rack1 stranger1, the place of n009`)
    expect((await cluster.ready('n009')).id).toBe(before.id)
    expect((await cluster.node('n009')).observed).toMatchObject({ boot: { value: 'ready' }, health: { value: 'ok' } })
  })

  it('has it once the node is silent, when it is switched on anew', async () => {
    await switchOff({ stranger1: 'n009' })
    expect(await machineOf(THIRD)).toMatchObject({ node: null, note: `waits: n009 is ${FIRST}` })
    await cluster.lab.power(['stranger3'], 'cycle')
    await readyOn('n009', THIRD)
    await isCalled('stranger3', 'n009')
    expect(await events('node.replaced', 'n009')).toMatchObject([{ data: { mac: THIRD, before: [FIRST] } }])
  })
})
