import { describe, expect, it } from 'vitest'
import type { Switch } from '../site/switches.ts'
import { type Holder, PlaceBook, type PlaceClaim } from './place-book.ts'
import { LLDP, OPTION_82, type Place } from './places.ts'

const [A, B, C] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b', '52:54:00:00:00:0c']
const AT = '2026-03-01T12:00:00.000Z'
const LATER = '2026-03-01T13:00:00.000Z'

/** Nodes n1 to n3 at the first three ports of sw1; what the test changes. */
class World {
  readonly book = new PlaceBook()
  readonly holders = new Map<string, Holder>()
  readonly macs = new Map<string, string>()
  readonly fixed = new Set<string>()
  switches: Record<string, Switch> = { sw1: { circuit: 'cisco' } }

  take(
    mac: string,
    port: string,
    more: Partial<PlaceClaim> = {},
  ): { told: unknown[]; changes: [string, Place | null][] } {
    const claim = { mac, switch: 'sw1', port, source: OPTION_82, at: AT, ...more }
    const at = (place: string) => {
      const [, number] = /^sw1 ([123])$/.exec(place) ?? []
      return number === undefined ? undefined : { node: `n${number}`, mac: this.macs.get(`n${number}`) }
    }
    const site = { switches: this.switches, at, isFixed: (one: string) => this.fixed.has(one) }
    const { changes, events } = this.book.take(claim, { site, holderOf: node => this.holders.get(node) })
    return { told: events.map(({ kind, nodes, data }) => [kind, nodes, data]), changes: [...changes] }
  }
}

const seen = (port: string, more: Partial<Place> = {}): Place => ({
  switch: 'sw1',
  port,
  source: OPTION_82,
  since: AT,
  ...more,
})
const data = (mac: string, place: string, more: object = {}): object => ({ mac, place, source: OPTION_82, ...more })

describe('a machine at the place of a node', () => {
  it('is noted and told once', () => {
    const world = new World()
    expect(world.take(A, '1')).toEqual({
      changes: [[A, seen('1')]],
      told: [['machine.placed', 'n1', data(A, 'sw1 1')]],
    })
    expect(world.take(A, '1', { at: LATER })).toEqual({ changes: [], told: [] })
  })

  it('takes the place of one that is gone', () => {
    const world = new World()
    world.take(A, '1')
    expect(world.take(B, '1', { at: LATER })).toEqual({
      changes: [
        [B, seen('1', { since: LATER })],
        [A, null],
      ],
      told: [['node.replaced', 'n1', data(B, 'sw1 1', { before: [A] })]],
    })
    expect(world.book.get(A)).toBeUndefined()
  })

  it.for([true, false])('waits for one that is that node now, up (%s) or on its way', isUp => {
    const world = new World()
    world.take(A, '1')
    world.holders.set('n1', { mac: A, isUp })
    expect(world.take(B, '1')).toEqual({
      changes: [[B, seen('1', { waits: A })]],
      told: [['node.place.conflict', 'n1', data(B, 'sw1 1', { holder: A })]],
    })
    // However often it comes back.
    expect(world.take(B, '1', { at: LATER })).toEqual({ changes: [], told: [] })
    expect(world.take(A, '1')).toEqual({ changes: [], told: [] })
    expect(world.book.get(A)).toEqual(seen('1'))
  })

  it('has it once the other one has fallen silent', () => {
    const world = new World()
    world.take(A, '1')
    world.holders.set('n1', { mac: A, isUp: true })
    world.take(B, '1')
    world.holders.delete('n1')
    expect(world.take(B, '1', { at: LATER })).toEqual({
      changes: [
        [B, seen('1')],
        [A, null],
      ],
      told: [['node.replaced', 'n1', data(B, 'sw1 1', { before: [A] })]],
    })
  })

  it('has it at once where the other one boots elsewhere by now', () => {
    const world = new World()
    world.take(A, '1')
    world.holders.set('n1', { mac: A, isUp: false })
    world.take(A, '9', { at: LATER })
    expect(world.take(B, '1').changes).toEqual([[B, seen('1')]])
  })

  it('takes the place of the one that the site names, unless that is up', () => {
    const world = new World()
    world.macs.set('n1', A)
    world.holders.set('n1', { mac: A, isUp: true })
    expect(world.take(B, '1').changes).toEqual([[B, seen('1', { waits: A })]])
    world.holders.delete('n1')
    expect(world.take(B, '1')).toEqual({
      changes: [[B, seen('1', { instead: A })]],
      told: [['node.replaced', 'n1', data(B, 'sw1 1', { before: [A] })]],
    })
    // It is back, and the other one is not up.
    expect(world.take(A, '1').changes).toEqual([
      [A, seen('1')],
      [B, null],
    ])
  })
})

describe('a machine that moves', () => {
  it('is told with where it was, and takes its new place', () => {
    const world = new World()
    world.take(A, '1')
    expect(world.take(A, '2', { at: LATER })).toEqual({
      changes: [[A, seen('2', { since: LATER, from: 'sw1 1' })]],
      told: [['machine.moved', 'n2', data(A, 'sw1 2', { from: 'sw1 1' })]],
    })
    expect(world.take(B, '1').told).toEqual([['machine.placed', 'n1', data(B, 'sw1 1')]])
  })

  it('waits where it comes to if another one is up there', () => {
    const world = new World()
    world.take(A, '1')
    world.take(B, '2')
    world.holders.set('n2', { mac: B, isUp: true })
    expect(world.take(A, '2').told).toEqual([
      ['machine.moved', 'n2', data(A, 'sw1 2', { from: 'sw1 1' })],
      ['node.place.conflict', 'n2', data(A, 'sw1 2', { holder: B })],
    ])
  })
})

it('a machine that is a node by its MAC alone takes no place from anybody', () => {
  const world = new World()
  world.take(A, '1')
  world.fixed.add(B)
  expect(world.take(B, '1')).toEqual({
    changes: [[B, seen('1')]],
    told: [['machine.placed', undefined, data(B, 'sw1 1')]],
  })
  expect(world.book.get(A)).toEqual(seen('1'))
})

describe('a place without a node', () => {
  it('is told, and may have several machines', () => {
    const world = new World()
    expect(world.take(A, '17').told).toEqual([['machine.unplaced', undefined, data(A, 'sw1 17')]])
    expect(world.take(B, '17').changes).toEqual([[B, seen('17')]])
    expect(world.book.get(A)).toEqual(seen('17'))
  })

  it('is not remembered for as many machines as somebody makes up', () => {
    const world = new World()
    for (let number = 0; number < 100; number++) world.take(`52:54:00:00:01:${number}`, '17')
    expect([...world.book.entries()]).toHaveLength(64)
  })
})

describe('witnesses', () => {
  it('of DHCP count more than LLDP, which calls the port what it likes', () => {
    const world = new World()
    world.take(A, '1')
    expect(world.take(A, 'Gi1/0/1', { source: LLDP })).toEqual({ changes: [], told: [] })
    expect(world.take(A, '3', { source: LLDP, switch: 'sw1' }).changes).toEqual([])
    expect(world.take(A, '1', { source: OPTION_82 }).changes).toEqual([])
  })

  it('of LLDP count where the switch says nothing over DHCP', () => {
    const world = new World()
    world.take(A, '1')
    const { told } = world.take(A, '7', { source: LLDP, switch: 'sw9' })
    expect(told).toEqual([
      ['machine.moved', undefined, { mac: A, place: 'sw9 7', source: LLDP, from: 'sw1 1' }],
      ['machine.unplaced', undefined, { mac: A, place: 'sw9 7', source: LLDP }],
    ])
  })

  it('of DHCP replace what LLDP said', () => {
    const world = new World()
    world.take(A, '2', { source: LLDP })
    expect(world.take(A, '1').changes).toEqual([[A, seen('1', { from: 'sw1 2' })]])
  })
})

describe('forgetting a machine', () => {
  it('leaves nothing, but its place where it runs as a node', () => {
    const world = new World()
    world.take(A, '1')
    world.take(A, '2')
    expect(world.book.forget(A, true)).toEqual(seen('2'))
    expect(world.book.get(A)).toEqual(seen('2'))
    expect(world.book.forget(A, false)).toBeNull()
    expect(world.book.get(A)).toBeUndefined()
    expect(world.book.forget(C, true)).toBeNull()
  })
})

it('what was kept is there again', () => {
  const book = new PlaceBook(new Map([[A, seen('1')]]))
  expect([...book.entries()]).toEqual([[A, seen('1')]])
})
