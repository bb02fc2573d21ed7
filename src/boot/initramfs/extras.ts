import { archiveOf, type Item } from './archive.ts'
import { compressed } from './compress.ts'
import { findProgram, programItems } from './programs.ts'

/** Programs of this machine that tell a machine nobody knows more about itself: its neighbour switch, its BMC. */
const PROGRAMS = ['tcpdump', 'ipmitool'] as const

export interface DiscoveryExtras {
  /** A second initramfs, to be loaded behind the one of an image. Every kernel can unpack it. */
  readonly archive: Buffer
  /** Which of the programs were here to be taken. */
  readonly programs: readonly string[]
}

export async function discoveryExtras(): Promise<DiscoveryExtras> {
  const items: Item[] = []
  const programs: string[] = []
  for (const name of PROGRAMS) {
    const path = await findProgram(name)
    if (path === undefined) continue
    programs.push(name)
    items.push(...(await programItems(name, path, 'extras')))
  }
  const archive = await compressed(archiveOf([{ path: 'extras', directory: true }, ...items]), 'gzip')
  return { archive, programs }
}
