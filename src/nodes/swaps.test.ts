import { describe, expect, it } from 'vitest'
import { Swap, type SwapRequest, Swaps } from './swaps.ts'

const [A, B] = ['52:54:00:00:00:0a', '52:54:00:00:00:0b']
const AT = '2026-03-01T12:00:00.000Z'
const request = (more: Partial<SwapRequest> = {}): SwapRequest => ({
  node: 'n012',
  with: 'spare3',
  actor: { name: 'olga', from: '10.0.0.1' },
  at: AT,
  running: {},
  ...more,
})
const swap: Swap = { node: 'n012', with: 'spare3', by: 'olga', at: AT, isActive: true, running: {} }

describe('two nodes change machines', () => {
  it('with who, when and why', () => {
    const swaps = new Swaps()
    const step = swaps.swap(request({ why: 'memory errors', running: { [B]: 'spare3' } }))
    const made = { ...swap, why: 'memory errors', running: { [B]: 'spare3' } }
    expect(step).toEqual({
      swaps: new Map([['n012', made]]),
      event: {
        kind: 'node.swapped',
        nodes: 'n012,spare3',
        actor: 'olga',
        from: '10.0.0.1',
        data: { node: 'n012', with: 'spare3', why: 'memory errors' },
      },
    })
    expect([swaps.of('n012'), swaps.of('spare3'), swaps.of('n013')]).toEqual([made, made, undefined])
    expect(Swap.parse(made)).toEqual(made)
  })

  it.for<[what: string, more: Partial<SwapRequest>, message: string]>([
    ['a node with itself', { node: 'n1', with: 'n1' }, 'n1 cannot change machines with itself'],
    ['one that has', { with: 'spare4' }, 'n012 has changed machines with spare3 already'],
    ['with one that has', { node: 'n013' }, 'spare3 has changed machines with n012 already'],
  ])('but not %s', ([, more, message]) => {
    expect(() => new Swaps([swap]).swap(request(more))).toThrow(
      expect.objectContaining({ code: 'SWAP_REFUSED', message }),
    )
  })
})

describe('a machine that was up', () => {
  it('is what it should be once it boots', () => {
    const swaps = new Swaps([{ ...swap, running: { [A]: 'n012', [B]: 'spare3' } }])
    expect(swaps.booted(A)).toEqual({
      swaps: new Map([['n012', { ...swap, running: { [B]: 'spare3' } }]]),
      event: {
        kind: 'node.swap.booted',
        nodes: 'n012,spare3',
        actor: 'boot',
        data: { node: 'n012', with: 'spare3', mac: A, was: 'n012' },
      },
    })
    expect(swaps.booted(A)).toBeUndefined()
  })
})

describe('taking it back', () => {
  it('is done at once where nothing runs', () => {
    const swaps = new Swaps([swap])
    expect(swaps.undo(request({ node: 'spare3' })).swaps).toEqual(new Map([['n012', null]]))
    expect(swaps.of('n012')).toBeUndefined()
  })

  it('is done at once for machines that have not booted since: they still are what they were', () => {
    const swaps = new Swaps([{ ...swap, running: { [A]: 'n012' } }])
    expect(swaps.undo(request({ running: { [A]: 'n012' } })).swaps).toEqual(new Map([['n012', null]]))
  })

  it('waits for machines that run as what it made them, and is gone after the last of them', () => {
    const swaps = new Swaps([swap])
    const undone = { ...swap, isActive: false, running: { [B]: 'n012' } }
    expect(swaps.undo(request({ running: { [B]: 'n012' } })).swaps).toEqual(new Map([['n012', undone]]))
    expect(() => swaps.swap(request({ with: 'spare4' }))).toThrow(
      'n012 still runs on the machine of spare3: it has not booted since that was taken back',
    )
    expect(swaps.booted(B)?.swaps).toEqual(new Map([['n012', null]]))
  })

  it.for(['n012', 'spare3'])('of what is not there is refused: %s', node => {
    expect(() => new Swaps().undo(request({ node }))).toThrow(`${node} has not changed machines with another node`)
    const undone = new Swaps([{ ...swap, isActive: false, running: { [B]: 'n012' } }])
    expect(() => undone.undo(request({ node }))).toThrow(`${node} has not changed machines with another node`)
  })
})
