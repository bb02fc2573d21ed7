import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compareNames } from '../../lib/tree/entry.ts'
import type { Item } from './archive.ts'

/** What runs on the machine: see there. */
export const SCRIPTS = fileURLToPath(new URL('../../../node/initramfs', import.meta.url))

/** `init` is run by the kernel, the rest by it. What ends in .sh is read by others. */
export async function scriptItems(dir: string): Promise<Item[]> {
  const names = (await readdir(dir)).filter(name => /^[a-z0-9-]+(?:\.sh)?$/.test(name)).sort(compareNames)
  return Promise.all(
    names.map(async name => ({
      path: name === 'init' ? name : `lib/muster/${name}`,
      content: await readFile(join(dir, name)),
      mode: name.endsWith('.sh') ? 0o644 : 0o755,
    })),
  )
}
