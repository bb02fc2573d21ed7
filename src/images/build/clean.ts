import { chmod, chown, lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { LEFTOVERS, globOf } from '../../site/leftovers.ts'
import type { MergedTree } from '../layers/merge.ts'

export async function cleanLayer(root: string): Promise<void> {
  for (const pattern of LEFTOVERS) {
    const slash = pattern.lastIndexOf('/')
    const dir = join(root, pattern.slice(0, slash))
    // Below a symbolic link lies something else, perhaps outside.
    if (!(await isPlainPath(root, pattern.slice(0, slash)))) continue
    const matcher = globOf(pattern.slice(slash + 1))
    const names = await readdir(dir).catch(() => [])
    for (const name of names) if (matcher.test(name)) await rm(join(dir, name), { recursive: true, force: true })
  }
  // Empty, it is filled in at boot; missing, systemd would take every boot for the first.
  const machineId = join(root, 'etc/machine-id')
  if ((await isPlainPath(root, 'etc')) && (await lstat(machineId).catch(() => undefined))?.isFile() === true)
    await writeFile(machineId, '')
}

/** Whether every part of a path in a layer is a directory: below a link lies something else, perhaps outside. */
export async function isPlainPath(root: string, path: string): Promise<boolean> {
  let here = root
  for (const name of path.split('/')) {
    here = join(here, name)
    const stat = await lstat(here).catch(() => undefined)
    if (stat === undefined || !stat.isDirectory()) return false
  }
  return true
}

/** Makes a directory of a layer with those above it, looking as they do in the layers below. */
export async function makeLayerDirectory(upper: string, path: string, below: MergedTree): Promise<void> {
  let here = ''
  for (const name of path.split('/').filter(Boolean)) {
    here = here === '' ? name : `${here}/${name}`
    const target = join(upper, here)
    const made = await mkdir(target).then(
      () => true,
      () => false,
    )
    if (!made) {
      if (!(await lstat(target)).isDirectory())
        throw new MusterError('BUILD_FAILED', `/${here} is not a directory`, { hint: '' })
      continue
    }
    const known = below.get(here)
    await chown(target, known?.uid ?? 0, known?.gid ?? 0)
    await chmod(target, known?.type === 'directory' ? known.mode : 0o755)
  }
}

/** Takes a file out of a layer in which scripts have run: not through a link that one of them may have left. */
export async function removeFromLayer(root: string, path: string): Promise<void> {
  if (await isPlainPath(root, dirname(path))) await rm(join(root, path), { force: true })
}

/** Puts a file into such a layer. */
export async function placeInLayer(
  upper: string,
  path: string,
  content: string | Buffer,
  below: MergedTree,
): Promise<void> {
  await makeLayerDirectory(upper, dirname(path), below)
  await rm(join(upper, path), { force: true })
  await writeFile(join(upper, path), content, { flag: 'wx', mode: 0o644 })
}
