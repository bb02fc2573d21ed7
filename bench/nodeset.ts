import { fold, parseNodeSet } from '../src/lib/nodeset/index.ts'
import { exec } from '../src/lib/exec.ts'
import { type Bench, round, seconds } from './figure.ts'
import { MUSTER } from './world.ts'

const COUNT = 100_000

/** Folding and expanding 100,000 names, beside ClusterShell's `nodeset` (Debian package clustershell). */
export const nodesetBench: Bench = async function* () {
  const range = `n[000001-${COUNT}]`
  const names = [...parseNodeSet(range)]
  // A fixed shuffle: the same work in every run.
  const shuffled = names
    .map((name, index) => ({ name, rank: (index * 7919) % COUNT }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ name }) => name)
  const input = shuffled.join('\n')

  const cases = [
    { name: 'fold', ours: ['nodeset', 'fold'], theirs: ['-f'], input },
    { name: 'expand', ours: ['nodeset', 'expand', range], theirs: ['-e', range], input: undefined },
  ]
  for (const { name, ours, theirs, input: text } of cases) {
    const options = text === undefined ? {} : { input: text }
    const own = await seconds(5, () => exec(MUSTER, ours, options))
    const peer = await seconds(5, () => exec('nodeset', theirs, options))
    yield {
      bench: 'nodeset',
      case: `${name} ${COUNT} names, whole process`,
      value: own,
      unit: 's',
      peer: 'ClusterShell nodeset',
      ratio: round(own / peer),
    }
  }
  const folding = 1000 * (await seconds(5, async () => fold(shuffled)))
  yield { bench: 'nodeset', case: `fold ${COUNT} names, in process`, value: folding, unit: 'ms' }
  const expanding = 1000 * (await seconds(5, async () => [...parseNodeSet(range)]))
  yield { bench: 'nodeset', case: `expand ${COUNT} names, in process`, value: expanding, unit: 'ms' }
}
