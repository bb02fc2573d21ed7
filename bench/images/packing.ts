import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { exec } from '../../src/lib/exec.ts'
import { type Figure, round } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { cpioByHand, squashfsByHand } from './by-hand.ts'
import { packInProcess } from './packed.ts'
import type { BenchTree } from './trees.ts'
import { inTurns, timed } from './turns.ts'

const ROUNDS = 3

/**
 * Both forms at once, with nothing to take over from earlier packs, beside the slower of the two made by hand, and
 * beside both made by hand at once: with two cores the tools themselves do not get below that.
 */
export async function* packingFigures(tree: BenchTree): AsyncGenerator<Figure> {
  // Read once, so that everybody finds it in memory.
  await exec('sh', ['-c', 'find "$1" -type f -exec cat {} + >/dev/null', 'sh', tree.path], { timeout: 0 })
  const { both, squashfs, cpio, tools } = await inTurns(ROUNDS, {
    both: async () => (await packInProcess(tree.path)).seconds,
    squashfs: () => byHand(squashfsByHand, tree),
    cpio: () => byHand(cpioByHand, tree),
    tools: () => byHand(bothByHand, tree),
  })
  yield {
    bench: 'images',
    case: `pack squashfs and cpio.zst at once, ${tree.about}`,
    value: both,
    unit: 's',
    peer: `the slower of mksquashfs (${round(squashfs)} s) and cpio | zstd (${round(cpio)} s); limit 1.1`,
    ratio: round(both / Math.max(squashfs, cpio)),
  }
  yield {
    bench: 'images',
    case: `pack squashfs and cpio.zst at once, ${tree.about}`,
    value: both,
    unit: 's',
    peer: `mksquashfs and cpio | zstd at once (${round(tools)} s), ${availableParallelism()} cores`,
    ratio: round(both / tools),
  }
}

const bothByHand: typeof squashfsByHand = async (tree, file) => {
  await Promise.all([squashfsByHand(tree, `${file}.squashfs`), cpioByHand(tree, `${file}.cpio`)])
}

async function byHand(pack: typeof squashfsByHand, tree: BenchTree): Promise<number> {
  await using dir = await temporaryDir()
  return await timed(() => pack(tree.path, join(dir.path, 'packed')))
}
