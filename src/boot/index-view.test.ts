import { describe, expect, it } from 'vitest'
import type { Swap } from '../nodes/swaps.ts'
import { isServed } from './index-view.ts'
import { COMPUTE, MAC, STRANGER, boots, indexOf, prov, viewOf } from './testing.ts'

const OTHER = '52:54:00:00:00:02'

describe('the node a machine is', () => {
  it('is the one whose MAC it has', () => {
    const machine = indexOf().machine(MAC)
    expect(machine?.node.name).toBe('n1')
    expect(machine?.interface?.name).toBe('prov')
    expect(machine?.because).toBe(`${MAC} is interfaces.prov.mac of n1`)
  })

  it('is the one whose place it is seen at', () => {
    const machine = indexOf({ places: { [OTHER]: 'sw1 2' } }).machine(OTHER)
    expect(machine?.node.name).toBe('n2')
    expect(machine?.because).toBe(`${OTHER} is plugged in at sw1 2, the place of n2`)
  })

  it('is none otherwise', () => {
    const index = indexOf({ places: { [OTHER]: 'sw1 99', [STRANGER]: 'sw2 2' } })
    expect(index.machine(OTHER)).toBeUndefined()
    expect(index.machine(STRANGER)).toBeUndefined()
    expect(index.machine('')).toBeUndefined()
  })

  it('is what the site says of its MAC, wherever it is seen', () => {
    const machine = indexOf({ places: { [MAC]: 'sw1 2' } }).machine(MAC)
    expect(machine?.node.name).toBe('n1')
    expect(machine?.because).toBe(`${MAC} is interfaces.prov.mac of n1`)
  })

  it('may be the same for two machines: what was plugged in before, and now', () => {
    const index = indexOf({ places: { [OTHER]: 'sw1 2', [STRANGER]: 'sw1 2' } })
    expect([index.machine(OTHER)?.node.name, index.machine(STRANGER)?.node.name]).toEqual(['n2', 'n2'])
    expect([...index.machines()].map(([mac, { node }]) => [mac, node.name])).toEqual([
      [OTHER, 'n2'],
      [STRANGER, 'n2'],
      [MAC, 'n1'],
    ])
  })

  it('is known by each of its MACs', () => {
    const two = boots('n1', {
      interfaces: [prov('10.77.1.1', { mac: MAC }), { name: 'bmc', network: 'bmc', mac: OTHER }],
    })
    const index = indexOf({ nodes: [two] })
    expect(index.machine(MAC)?.interface?.name).toBe('prov')
    expect(index.machine(OTHER)?.interface?.name).toBe('bmc')
  })
})

describe('the node a machine is, where the site says both MAC and place', () => {
  const nodes = [
    boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })], place: 'sw1 1' }),
    boots('n2', { interfaces: [prov('10.77.1.2')], place: 'sw1 2' }),
  ]
  const nameOf = (mac: string, wanted: Parameters<typeof indexOf>[0]): string | undefined =>
    indexOf({ nodes, ...wanted }).machine(mac)?.node.name

  it.for<[where: string, place: string | undefined, node: string]>([
    ['nowhere', undefined, 'n1'],
    ['at its place', 'sw1 1', 'n1'],
    ['where no node is', 'sw1 17', 'n1'],
    ['at the place of another node', 'sw1 2', 'n2'],
  ])('is, when it is seen %s', ([, place, node]) => {
    expect(nameOf(MAC, { places: place === undefined ? {} : { [MAC]: place } })).toBe(node)
  })

  it('is none while it waits for another one', () => {
    const waiting = { [MAC]: { node: 'n1', holder: OTHER, place: 'sw1 1' } }
    const index = indexOf({ nodes, waiting, places: { [OTHER]: 'sw1 1' } })
    expect([index.machine(MAC), index.machine(OTHER)?.node.name]).toEqual([undefined, 'n1'])
    expect(index.waiting(MAC)).toEqual({ node: 'n1', holder: OTHER, place: 'sw1 1' })
  })
})

describe('nodes that have changed machines', () => {
  const bmc = { name: 'bmc', network: 'bmc', mac: '52:54:00:00:00:bc' }
  const nodes = [
    boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC }), bmc] }),
    boots('n2', { interfaces: [prov('10.77.1.2')], place: 'sw1 2' }),
  ]
  const swap = { node: 'n1', with: 'n2', by: 'olga', at: '2026-03-01T12:00:00.000Z', isActive: true, running: {} }
  const index = (change: Partial<Swap> = {}) =>
    indexOf({ nodes, places: { [OTHER]: 'sw1 2' }, swaps: [{ ...swap, ...change }] })
  const names = (view: ReturnType<typeof index>): (string | undefined)[] =>
    [MAC, OTHER].map(mac => view.machine(mac)?.node.name)

  it('are each the other, however their machines are known', () => {
    const view = index({ why: 'memory errors' })
    expect(names(view)).toEqual(['n2', 'n1'])
    expect(view.machine(OTHER)).toEqual({
      node: nodes[0],
      interface: nodes[0]?.interfaces[0],
      because: `${OTHER} is plugged in at sw1 2, the place of n2, but olga swapped n1 and n2 at 2026-03-01T12:00:00.000Z: memory errors`,
    })
    expect(view.at('sw1 2')).toEqual({ node: 'n1', mac: undefined })
  })

  it('leave management controllers where they are', () => {
    expect(index().machine(bmc.mac)?.node.name).toBe('n1')
  })

  it('wait for machines that still run as what they were', () => {
    const view = index({ running: { [OTHER]: 'n2' } })
    expect(names(view)).toEqual([undefined, 'n2'])
    expect(view.waiting(MAC)).toEqual({ node: 'n2', holder: OTHER })
    expect(names(index({ running: { [MAC]: 'n1', [OTHER]: 'n2' } }))).toEqual(['n1', 'n2'])
  })

  it('are what they should be once they begin to boot, whatever else still runs', () => {
    const view = index({ running: { [MAC]: 'n1', [OTHER]: 'n2' } })
    expect(names(view.begun(MAC))).toEqual([undefined, 'n2'])
    expect(view.begun(MAC).waiting(MAC)).toEqual({ node: 'n2', holder: OTHER })
    expect(names(view.begun(MAC).begun(OTHER))).toEqual(['n2', 'n1'])
    expect(view.begun(STRANGER)).toBe(view)
  })

  it('stay what they run as after it was taken back, until they boot', () => {
    const view = index({ isActive: false, running: { [OTHER]: 'n1' } })
    expect(names(view)).toEqual([undefined, 'n1'])
    expect(view.waiting(MAC)).toEqual({ node: 'n1', holder: OTHER })
    expect(names(index({ isActive: false }))).toEqual(['n1', 'n2'])
  })

  it('are nothing special once one of them is gone from the site', () => {
    const one = indexOf({ nodes: nodes.slice(0, 1), swaps: [swap] })
    expect(one.machine(MAC)?.node.name).toBe('n1')
  })

  it('may be many, and whoever waits waits for the right one', () => {
    const waiting = { [STRANGER]: { node: 'n2', holder: OTHER, place: 'sw1 2' } }
    const more = { ...swap, node: 'n3', with: 'n4' }
    const view = indexOf({ nodes: [...nodes, boots('n3'), boots('n4')], waiting, swaps: [swap, more] })
    expect(view.waiting(STRANGER)?.node).toBe('n1')
    const still = indexOf({ nodes, waiting, swaps: [{ ...swap, running: { [OTHER]: 'n2' } }] })
    expect(still.waiting(STRANGER)?.node).toBe('n2')
  })
})

describe('the interface that a machine known by its place boots from', () => {
  const ib = { name: 'ib0', network: 'ib', address: '10.78.1.1' }
  const networks = { ib: { cidr: '10.78.0.0/16' }, prov: { cidr: '10.77.0.0/16' } }
  const open = { ...networks, prov: { ...networks.prov, unknown: '10.77.255.0/24' } }
  const bootsFrom = (wanted: Parameters<typeof indexOf>[0], interfaces = [ib, prov('10.77.1.1')]): string | undefined =>
    indexOf({ nodes: [boots('n1', { place: 'sw1 1', interfaces })], places: { [MAC]: 'sw1 1' }, ...wanted }).machine(
      MAC,
    )?.interface?.name

  it('is in a network with a boot server', () => {
    expect(bootsFrom({ networks })).toBe('prov')
  })

  it('is in a network in which we give out addresses', () => {
    expect(bootsFrom({ networks: { ...networks, ib: { ...networks.ib, dhcp: true } } })).toBe('ib0')
    expect(bootsFrom({ networks: { ...networks, prov: { ...networks.prov, dhcp: false } } })).toBe('ib0')
  })

  it('is in a network with addresses for strangers, where the site says nothing of servers', () => {
    const provision = { servers: undefined }
    expect(bootsFrom({ networks: open, provision })).toBe('prov')
    expect(bootsFrom({ networks, provision })).toBe('ib0')
  })

  it('has an address', () => {
    const { address: _, ...bare } = prov('')
    expect(bootsFrom({ networks: open }, [bare as typeof ib, ib])).toBe('ib0')
    expect(bootsFrom({ networks: open }, [bare as typeof ib])).toBeUndefined()
  })
})

describe('nodes and images', () => {
  it('are found by name', () => {
    expect(indexOf().node('n3')?.name).toBe('n3')
    expect(indexOf().image('compute')).toEqual(COMPUTE)
  })

  it.for(['constructor', 'toString', '__proto__', 'n4'])('%s is none', name => {
    expect(indexOf().node(name)).toBeUndefined()
    expect(indexOf().image(name)).toBeUndefined()
  })
})

const served = (network: object, own: string[] = [], servers?: string[]): boolean =>
  isServed(viewOf({ networks: { prov: { cidr: '10.77.0.0/16', ...network } }, provision: { servers } }), 'prov', own)

describe('whether we give out addresses in a network', () => {
  it.for<[what: string, isOne: boolean, expected: boolean]>([
    ['with one of the boot servers of the site in it', served({}, [], ['10.77.0.1']), true],
    ['with one of our own addresses in it', served({}, ['10.77.0.9']), true],
    ['with neither', served({}, ['10.78.0.9'], ['10.79.0.1']), false],
    ['that says so', served({ dhcp: true }), true],
    ['that says not', served({ dhcp: false }, ['10.77.0.9'], ['10.77.0.1']), false],
  ])('%s: %s', ([, isOne, expected]) => {
    expect(isOne).toBe(expected)
  })

  it.for(['other', 'constructor'])('that is not there (%s): no', name => {
    expect(isServed(viewOf(), name, ['10.77.0.1'])).toBe(false)
  })
})
