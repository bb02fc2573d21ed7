import { expect, it } from 'vitest'
import { PLACE, Place } from './places.ts'

const place = { switch: 'leaf-03', port: '17', source: 'lab', since: '2026-03-01T12:00:00.000Z' }

it('a place is a port of a switch, and who says so', () => {
  expect(Place.parse(place)).toEqual(place)
  expect(PLACE).toBe('place/')
})

it.for([
  ['without a switch', { ...place, switch: '' }],
  ['without a port', { ...place, port: '' }],
  ['with a name that is too long', { ...place, switch: 'x'.repeat(129) }],
  ['at no time', { ...place, since: 'today' }],
  ['with more than belongs to it', { ...place, rack: 'r1' }],
] as const)('%s it is none', ([, value]) => {
  expect(Place.safeParse(value).success).toBe(false)
})
