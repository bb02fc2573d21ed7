import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { makeDirectory } from '../lib/dirs.ts'
import { discoveryExtras as build } from './initramfs/extras.ts'

/** The second initramfs of the discovery system, as a file beside the images. */
export interface DiscoveryExtras {
  readonly sha256: string
  readonly path: string
}

/** Made of programs of this machine, in a moment; kept nowhere else. */
export async function discoveryExtras(dir: string): Promise<DiscoveryExtras> {
  const { archive } = await build()
  const sha256 = createHash('sha256').update(archive).digest('hex')
  await makeDirectory(dir, 0o755)
  const path = `${dir}/${sha256}`
  await writeFile(path, archive, { mode: 0o644 })
  return { sha256, path }
}
