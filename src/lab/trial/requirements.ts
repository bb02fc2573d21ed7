import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Manifest } from '../../images/manifest.ts'
import { MusterError } from '../../lib/errors.ts'
import { QEMU } from '../qemu.ts'
import { type Host, thisHost } from '../requirements.ts'

const TOOLS = [
  [QEMU, 'qemu-system-x86'],
  ['busybox', 'busybox-static'],
  ['setpriv', 'util-linux'],
] as const

const AGENT = ['usr/lib/muster/muster-agent']
const GENERATOR = ['usr/lib', 'lib'].map(dir => `${dir}/systemd/system-generators/systemd-debug-generator`)
const ELSEWHERE = 'where: container'

/** What is known without booting anything, before a machine waits for it in vain. */
export async function requireTrial(
  { name, arch }: Pick<Manifest, 'name' | 'arch'>,
  tree: string,
  host: Pick<Host, 'has'> = thisHost(),
): Promise<void> {
  if (arch !== 'amd64')
    throw new MusterError('BUILD_NEEDS', `the image ${name} is for ${arch}; virtual machines here are x86-64`, {
      hint: 'test it on a machine of its own kind, or let its tests run elsewhere: where: root',
    })
  const missing: string[] = []
  for (const [tool, debianPackage] of TOOLS) if (!(await host.has(tool))) missing.push(debianPackage)
  if (missing.length > 0)
    throw new MusterError('BUILD_NEEDS', 'testing an image in a virtual machine needs what is not there', {
      hint: `on Debian: apt-get install ${missing.join(' ')}`,
    })
  if (!(await hasOne(tree, AGENT)))
    throw new MusterError('IMAGE_INCOMPLETE', `the image ${name} has no agent that could say when it is ready`, {
      hint: `add it to the recipe: steps: [{ modules: [muster-agent] }]; or let these tests run in a container: ${ELSEWHERE}`,
    })
  if (!(await hasOne(tree, GENERATOR)))
    throw new MusterError('IMAGE_INCOMPLETE', `the image ${name} is not started by systemd, which lets tests in`, {
      hint: `let these tests run elsewhere: ${ELSEWHERE}`,
    })
}

/** Links in the tree lead anywhere, also out of it: only their names count. */
async function hasOne(tree: string, paths: readonly string[]): Promise<boolean> {
  const found = await Promise.allSettled(paths.map(path => lstat(join(tree, path))))
  return found.some(one => one.status === 'fulfilled')
}
