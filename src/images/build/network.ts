import { lstat, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isPlainPath, makeLayerDirectory } from './clean.ts'
import type { StageWork } from './stage.ts'

/**
 * A step that may reach the network needs this machine's resolv.conf, which must not end up in the image: it is mounted
 * over the image's own for as long as the step runs.
 */
export async function networkFiles(
  work: StageWork,
): Promise<{ readable: Record<string, string>; tidy(): Promise<void> }> {
  const path = work.tree.resolve('etc/resolv.conf')
  const outside = '/etc/resolv.conf'
  // Where the link leads below /run, the sandbox has a fresh directory.
  if (path.startsWith('run/') || work.tree.get(path)?.type === 'file')
    return { readable: { [`/${path}`]: outside }, tidy: () => Promise.resolve() }
  await makeLayerDirectory(work.upper, dirname(path), work.tree)
  const placed = join(work.upper, path)
  await mkdir(dirname(placed), { recursive: true })
  await writeFile(placed, '')
  return {
    readable: { [`/${path}`]: outside },
    async tidy() {
      // The step may have put a link where the directory was.
      if (!(await isPlainPath(work.upper, dirname(path)))) return
      const stat = await lstat(placed).catch(() => undefined)
      // A step that wrote one of its own keeps it.
      if (stat?.isFile() === true && stat.size === 0) await rm(placed)
    },
  }
}
