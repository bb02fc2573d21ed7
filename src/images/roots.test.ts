import { expect, test } from 'vitest'
import type { Observed } from '../state/observed.ts'
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
  expect([...rootsOf(nodes).uses]).toEqual([
    [A, '2 nodes'],
    [B, '1 node'],
  ])
})

test('without nodes nothing is used', () => {
  expect(rootsOf([]).uses.size).toBe(0)
  expect(rootsOf([{}, {}]).uses.size).toBe(0)
})
