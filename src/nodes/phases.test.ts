import { describe, expect, it } from 'vitest'
import { PHASES, Phase, WAITS, isLater } from './phases.ts'

describe('the phases of a boot', () => {
  it('are these, in this order', () => {
    expect(PHASES).toEqual(['dhcp', 'loader', 'kernel', 'initrd', 'fetch', 'root', 'agent', 'ready'])
    expect(Phase.options).toEqual(PHASES)
  })

  it('are each waited for so many seconds, but the last', () => {
    expect(Object.entries(WAITS).map(([phase, { seconds }]) => [phase, seconds])).toEqual([
      ['dhcp', 120],
      ['loader', 300],
      ['kernel', 300],
      ['initrd', 180],
      ['fetch', 900],
      ['root', 300],
      ['agent', 300],
    ])
  })

  it('come one after the other', () => {
    for (const [index, phase] of PHASES.entries())
      for (const [other, than] of PHASES.entries()) expect(isLater(phase, than)).toBe(index > other)
  })
})
