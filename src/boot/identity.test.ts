import { describe, expect, it } from 'vitest'
import type { Place } from '../nodes/places.ts'
import { identitiesOf } from './identity.ts'
import { boots, prov } from './testing.ts'

const [A, B, C] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b', '52:54:00:00:00:0c']

const seen = (port: string, more: Partial<Place> = {}): Place => ({
  switch: 'sw1',
  port,
  source: 'option 82',
  since: '2026-03-01T12:00:00.000Z',
  ...more,
})
const LATER = '2026-03-01T13:00:00.000Z'

/** n1 and n2 at the first two ports of sw1, with these MACs. */
const identities = (places: Record<string, Place>, macs: Record<string, string> = {}) =>
  identitiesOf(
    ['1', '2'].map(port => boots(`n${port}`, { place: `sw1 ${port}`, interfaces: [prov(`10.77.1.${port}`)] })),
    new Map(Object.entries(places)),
    ({ name }) => macs[name],
  )

describe('of machines at the place of a node', () => {
  it('one is it', () => {
    expect(identities({ [A]: seen('1'), [B]: seen('2') })).toEqual({
      places: { [A]: 'sw1 1', [B]: 'sw1 2' },
      waiting: {},
    })
  })

  it('the last one is it, where the site has put a node between them', () => {
    expect(identities({ [A]: seen('1'), [B]: seen('1', { since: LATER }) })).toEqual({
      places: { [B]: 'sw1 1' },
      waiting: { [A]: { node: 'n1', holder: B, place: 'sw1 1' } },
    })
  })

  it('one that was told to wait is not it, however late it came', () => {
    expect(identities({ [A]: seen('1'), [B]: seen('1', { since: LATER, waits: A }) })).toEqual({
      places: { [A]: 'sw1 1' },
      waiting: { [B]: { node: 'n1', holder: A, place: 'sw1 1' } },
    })
    expect(identities({ [B]: seen('1', { waits: C }) })).toEqual({
      places: {},
      waiting: { [B]: { node: 'n1', holder: C, place: 'sw1 1' } },
    })
  })
})

it('a machine that is a node by its MAC alone keeps nobody from a place', () => {
  const nodes = [
    boots('n1', { place: 'sw1 1', interfaces: [prov('10.77.1.1')] }),
    boots('m1', { interfaces: [prov('10.77.2.1', { mac: C })] }),
  ]
  const places = new Map([
    [A, seen('1')],
    [C, seen('1', { since: LATER })],
  ])
  expect(identitiesOf(nodes, places, () => undefined)).toEqual({ places: { [A]: 'sw1 1' }, waiting: {} })
})

describe('of a machine that the site names for a node with a place', () => {
  it('nothing is taken by one that came before the site named it', () => {
    expect(identities({ [B]: seen('1') }, { n1: A })).toEqual({
      places: {},
      waiting: { [B]: { node: 'n1', holder: A, place: 'sw1 1' } },
    })
  })

  it('the node is taken by one that was plugged in instead', () => {
    expect(identities({ [B]: seen('1', { instead: A }) }, { n1: A })).toEqual({
      places: { [B]: 'sw1 1' },
      waiting: { [A]: { node: 'n1', holder: B, place: 'sw1 1' } },
    })
    // The site names yet another one since.
    expect(identities({ [B]: seen('1', { instead: A }) }, { n1: C }).waiting).toEqual({
      [B]: { node: 'n1', holder: C, place: 'sw1 1' },
    })
  })

  it('the node is free once it is seen where another node belongs, not where none does', () => {
    expect(identities({ [A]: seen('2'), [B]: seen('1') }, { n1: A })).toEqual({
      places: { [A]: 'sw1 2', [B]: 'sw1 1' },
      waiting: {},
    })
    expect(identities({ [A]: seen('17'), [B]: seen('1') }, { n1: A })).toEqual({
      places: { [A]: 'sw1 17' },
      waiting: { [B]: { node: 'n1', holder: A, place: 'sw1 1' } },
    })
  })
})
