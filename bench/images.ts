import type { Bench } from './figure.ts'
import { coldBuildFigures } from './images/cold-build.ts'
import { memoryFigures } from './images/memory.ts'
import { packingFigures } from './images/packing.ts'
import { rebuildFigures } from './images/rebuild.ts'
import { copyOfThisMachine } from './images/trees.ts'
import { temporaryDir } from './world.ts'

const GIGABYTE = 1e9

/**
 * Building images, beside the same done by hand with Debian's tools. Needs root, some minutes and 12 GB in the temporary
 * directory; the cold builds fetch their packages from the mirrors of this machine's apt.
 */
export const imagesBench: Bench = async function* () {
  yield* coldBuildFigures()
  {
    await using dir = await temporaryDir()
    const tree = await copyOfThisMachine(dir.path, GIGABYTE)
    yield* rebuildFigures(tree)
    yield* packingFigures(tree)
  }
  yield* memoryFigures()
}
