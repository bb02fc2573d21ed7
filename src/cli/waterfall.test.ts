import { describe, expect, it } from 'vitest'
import type { BootReply } from '../api/schemas.ts'
import { PHASES, type Phase } from '../nodes/phases.ts'
import { waterfall } from './waterfall.ts'

const START = Date.parse('2026-03-01T12:00:00.000Z')
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString()

/** Phases one after the other, each so many seconds long; the last is still open. */
function boot(took: readonly number[], more: Partial<BootReply> = {}, names: readonly Phase[] = PHASES): BootReply {
  let now = 0
  const phases = took.map((seconds, index) => ({
    phase: names[index] as Phase,
    at: at(now),
    seconds: ((now += seconds), seconds),
  }))
  const open = names[took.length]
  const all = open === undefined ? phases : [...phases, { phase: open, at: at(now) }]
  return { mac: '52:54:00:00:00:01', phases: all, last: { at: at(now), what: 'something' }, ...more }
}

describe('a boot on one line', () => {
  it.for<[what: string, boot: BootReply, seconds: number, line: string]>([
    ['that has just begun', boot([]), 0, 'dhcp 0.0s …'],
    ['that is on its way', boot([0.3, 2]), 9.34, 'dhcp 0.3s ▏ loader 2.0s ▎ kernel 7.0s …'],
    [
      'that is ready, whenever it is looked at',
      boot([0.04, 0.3, 3, 1, 8, 15, 1.2]),
      9999,
      'dhcp 0.0s ▏ loader 0.3s ▏ kernel 3.0s ▍ initrd 1.0s ▏ fetch 8.0s █ root 15.0s █▉ agent 1.2s ▏ ready   28.5 s',
    ],
    [
      'without a second stage',
      boot([1, 2, 3], {}, ['loader', 'kernel', 'agent', 'ready']),
      9999,
      'loader 1.0s ▏ kernel 2.0s ▎ agent 3.0s ▍ ready   6.0 s',
    ],
    ['of which only the end was seen', boot([], {}, ['ready']), 60, 'ready   0.0 s'],
    [
      'that failed, as long as it took until then',
      boot([0.3, 2], { failed: { at: at(6.3), reason: 'no route to host' } }),
      90_000,
      'dhcp 0.3s ▏ loader 2.0s ▎ kernel 4.0s ▌ FAILED: no route to host',
    ],
    ['by a clock that is behind', boot([1]), 0.5, 'dhcp 1.0s ▏ loader 0.0s …'],
    ['that takes for ever', boot([1e6]), 1e6, `dhcp 1000000.0s ${'█'.repeat(16)} loader 0.0s …`],
  ])('%s', ([, reply, seconds, line]) => {
    expect(waterfall(reply, new Date(START + seconds * 1000))).toBe(line)
  })

  it.for([
    [0, '▏'],
    [1, '▏'],
    [2, '▎'],
    [3, '▍'],
    [4, '▌'],
    [5, '▋'],
    [6, '▊'],
    [7, '▉'],
    [8, '█'],
    [9, '█▏'],
    [16, '██'],
    [127, `${'█'.repeat(15)}▉`],
    [129, '█'.repeat(16)],
  ] as const)('%i s are %s', ([seconds, bar]) => {
    expect(waterfall(boot([seconds]), new Date(START + seconds * 1000))).toBe(`dhcp ${seconds}.0s ${bar} loader 0.0s …`)
  })
})
