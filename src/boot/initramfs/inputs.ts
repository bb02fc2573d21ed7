import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { archiveOf } from './archive.ts'
import { type InitramfsOptions, SKELETON } from './build.ts'
import { APPLETS } from './busybox.ts'
import { scriptItems } from './scripts.ts'
import * as usual from './usual-modules.ts'
import { type Anchors, anchorItems } from './verifier.ts'

/** Counted up when the same inputs come to make another initramfs. */
const GENERATION = 1

/**
 * What an initramfs depends on beside the tree, the kernel's version and the modules of the recipe: our scripts, busybox, the keys
 * of the site and the tables here, as one digest. An image whose digest of inputs holds it is built anew when our init changes.
 */
export async function initramfsInputs(
  tools: Pick<InitramfsOptions, 'busybox' | 'scripts' | keyof Anchors>,
): Promise<string> {
  const ours = [...(await scriptItems(tools.scripts)), ...(await anchorItems(tools))]
  const scripts = archiveOf([...SKELETON, ...ours])
  const tables = JSON.stringify([GENERATION, APPLETS, usual])
  return [scripts, await readFile(tools.busybox), tables]
    .reduce((hash, part) => hash.update(createHash('sha256').update(part).digest()), createHash('sha256'))
    .digest('hex')
}
