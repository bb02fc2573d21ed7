import { chmod, copyFile, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'

const APPLETS = [
  'cat',
  'chmod',
  'echo',
  'env',
  'id',
  'ls',
  'mkdir',
  'mv',
  'readlink',
  'sh',
  'sleep',
  'test',
  'touch',
  'yes',
]

/** A root of one static program. */
export async function busyboxRoot(dir: string): Promise<string> {
  await mkdir(join(dir, 'bin'), { recursive: true })
  await mkdir(join(dir, 'etc'))
  await chmod(dir, 0o755)
  await copyFile('/usr/bin/busybox', join(dir, 'bin/busybox'))
  for (const name of APPLETS) await symlink('busybox', join(dir, 'bin', name))
  return dir
}
