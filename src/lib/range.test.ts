import { describe, expect, it } from 'vitest'
import { parseRange } from './range.ts'

describe('a range of a hundred bytes', () => {
  it.for([
    ['bytes=0-0', { start: 0, end: 0 }],
    ['bytes=0-99', { start: 0, end: 99 }],
    ['bytes=10-19', { start: 10, end: 19 }],
    ['bytes=10-', { start: 10, end: 99 }],
    ['bytes=99-', { start: 99, end: 99 }],
    ['bytes=90-1000', { start: 90, end: 99 }],
    ['bytes=-1', { start: 99, end: 99 }],
    ['bytes=-1000', { start: 0, end: 99 }],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=100-200', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    [undefined, undefined],
    ['', undefined],
    ['bytes=', undefined],
    ['bytes=-', undefined],
    ['bytes=19-10', undefined],
    ['bytes=0-1,3-4', undefined],
    ['bytes=a-b', undefined],
    ['bytes=0x1-', undefined],
    ['bytes=-1-2', undefined],
    [`bytes=${'9'.repeat(400)}-`, undefined],
    ['lines=0-1', undefined],
  ] as const)('%s is %j', ([header, range]) => {
    expect(parseRange(header, 100)).toEqual(range)
  })

  it('of nothing is never satisfied', () => {
    expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable')
    expect(parseRange('bytes=-5', 0)).toBe('unsatisfiable')
    expect(parseRange(undefined, 0)).toBeUndefined()
  })
})
