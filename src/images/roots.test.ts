import { expect, test } from 'vitest'
import type { Observed } from '../state/observed.ts'
import type { Move } from './moves.ts'
import { rootsOf } from './roots.ts'

const [A, B] = ['a', 'b'].map(letter => `sha256:${letter.repeat(64)}` as const) as [
  `sha256:${string}`,
  `sha256:${string}`,
]
const running = (value: string): Observed => ({ image: { value, since: '2026-03-01T12:00:00Z' } })

test('who uses which image: the nodes that run it', () => {
  const nodes = [
    running(A),
    running(B),
    {},
    running(A),
    { power: { value: 'off', since: '2026-03-01T12:00:00Z' } } as const,
  ]
  expect([...rootsOf(nodes, []).uses]).toEqual([
    [A, '2 nodes'],
    [B, '1 node'],
  ])
})

test('without nodes nothing is used', () => {
  expect(rootsOf([], []).uses.size).toBe(0)
  expect(rootsOf([{}, {}], []).uses.size).toBe(0)
})

const move = (digest: string, back = false): Move => ({
  digest,
  at: '2026-03-01T12:00:00Z',
  by: 'alice',
  reason: '',
  back,
})

test('and the channels that point to it, or may go back to it', () => {
  const stable = { name: 'compute', channel: 'stable', moves: [move(B), move(A)] as [Move, Move] }
  expect([...rootsOf([], [stable]).uses]).toEqual([
    [A, 'the history of compute@stable'],
    [B, 'compute@stable'],
  ])
  expect(rootsOf([running(B)], [stable]).uses.get(B)).toBe('1 node')
})
