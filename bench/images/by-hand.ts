import { exec } from '../../src/lib/exec.ts'

/** What people do without us, as they would type it. The files must not exist. */
export async function squashfsByHand(tree: string, file: string): Promise<void> {
  const settings = ['-comp', 'zstd', '-Xcompression-level', '3', '-no-progress', '-quiet']
  await exec('mksquashfs', [tree, file, ...settings], { timeout: 0 })
}

export async function cpioByHand(tree: string, file: string): Promise<void> {
  const script = 'find . -print0 | LC_ALL=C sort -z | cpio -0 -o -H newc --quiet | zstd -3 -q -o "$1"'
  await exec('sh', ['-c', script, 'sh', file], { cwd: tree, timeout: 0 })
}
