import type { Observed } from '../state/observed.ts'
import { type ChannelHistory, stackOf } from './moves.ts'
import type { Digest } from './manifest.ts'
import type { Roots } from './store/collect.ts'

/** As far back as `rollback` can be asked for. */
const BACK = 5

/** Who uses which image: channels that point to it, or may go back to it, and nodes that run it. */
export function rootsOf(nodes: Iterable<Observed>, channels: readonly ChannelHistory[]): Roots {
  const uses = new Map<Digest, string>()
  for (const { name, channel, moves } of channels) {
    for (const { digest } of stackOf(moves).slice(-BACK))
      uses.set(digest as Digest, `the history of ${name}@${channel}`)
  }
  for (const { name, channel, moves } of channels) uses.set(moves[0].digest as Digest, `${name}@${channel}`)
  const counts = new Map<Digest, number>()
  for (const { image } of nodes) {
    const digest = image?.value as Digest | undefined
    if (digest !== undefined) counts.set(digest, (counts.get(digest) ?? 0) + 1)
  }
  for (const [digest, count] of counts) uses.set(digest, count === 1 ? '1 node' : `${count} nodes`)
  return { uses }
}
