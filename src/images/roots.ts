import type { Observed } from '../state/observed.ts'
import type { Digest } from './manifest.ts'
import type { Roots } from './store/collect.ts'

/** Who uses which image: the nodes that run it. */
export function rootsOf(nodes: Iterable<Observed>): Roots {
  const counts = new Map<Digest, number>()
  for (const { image } of nodes) {
    const digest = image?.value as Digest | undefined
    if (digest !== undefined) counts.set(digest, (counts.get(digest) ?? 0) + 1)
  }
  return { uses: new Map([...counts].map(([digest, count]) => [digest, count === 1 ? '1 node' : `${count} nodes`])) }
}
