import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { type Figure, round } from '../figure.ts'
import { temporaryDir } from '../world.ts'
import { packInProcess } from './packed.ts'
import { madeUpTree } from './trees.ts'

const GIGABYTE = 1e9
const ROOM = 12 * GIGABYTE

/** The most memory packing takes, beside the same for a smaller tree: a ratio of 1 means that the size does not matter. */
export async function* memoryFigures(): AsyncGenerator<Figure> {
  const { bavail, bsize } = await statfs(tmpdir())
  const free = bavail * bsize
  const hasRoom = free >= ROOM
  const small = await peakFor(GIGABYTE)
  const large = await peakFor((hasRoom ? 4 : 2) * GIGABYTE)
  const note = hasRoom ? '' : ` (not 4 GB: only ${round(free / GIGABYTE)} GB free in the temporary directory)`
  yield {
    bench: 'images',
    case: `memory to pack squashfs and cpio.zst at once, ${large.about}${note}`,
    value: large.megabytes,
    unit: 'MB',
    peer: `the same for ${small.about} (${round(small.megabytes)} MB)`,
    ratio: round(large.megabytes / small.megabytes),
  }
}

async function peakFor(bytes: number): Promise<{ readonly about: string; readonly megabytes: number }> {
  await using dir = await temporaryDir()
  const { path, about } = await madeUpTree(dir.path, bytes)
  return { about, megabytes: (await packInProcess(path)).megabytes }
}
