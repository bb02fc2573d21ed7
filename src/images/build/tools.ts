import { exists } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { isInstalled } from '../../lib/which.ts'
import type { Recipe } from '../../site/recipe.ts'

/** What building needs of the machine: command, and the Debian package that brings it. */
type Tool = readonly [command: string, debianPackage: string]

const ALWAYS: readonly Tool[] = [
  ['bwrap', 'bubblewrap'],
  ['unshare', 'util-linux'],
  ['getfattr', 'attr'],
]

const BY_BASE: Readonly<Record<string, readonly Tool[]>> = {
  debian: [
    ['mmdebstrap', 'mmdebstrap'],
    ['apt-get', 'apt'],
    ['dpkg-deb', 'dpkg'],
    ['curl', 'curl'],
  ],
  dnf: [
    ['dnf', 'dnf'],
    ['createrepo_c', 'createrepo-c'],
    ['curl', 'curl'],
  ],
  oci: [
    ['skopeo', 'skopeo'],
    ['umoci', 'umoci'],
  ],
  tar: [['tar', 'tar']],
}

/** What this recipe needs. Ansible's chroot connection comes with the whole of Ansible, not with its core. */
export const toolsFor = ({ from, steps, outputs }: Recipe): readonly Tool[] => [
  ...(BY_BASE[from.kind] ?? []),
  ...(steps.some(step => step.ansible !== undefined) ? [['ansible-playbook', 'ansible'] as const] : []),
  ...(outputs.includes('erofs') ? [['mkfs.erofs', 'erofs-utils'] as const] : []),
]

/** Says all at once what is missing, before anything has begun. */
export async function requireTools(more: readonly Tool[] = []): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new MusterError('BUILD_NEEDS', 'building an image needs root: it makes files of other users', {
      hint: 'run it with sudo',
    })
  const missing: Tool[] = []
  for (const tool of [...ALWAYS, ...more]) if (!(await isInstalled(tool[0]))) missing.push(tool)
  if (missing.length === 0) return
  const packages = [...new Set(missing.map(([, debianPackage]) => debianPackage))].join(' ')
  throw new MusterError('BUILD_NEEDS', `this machine lacks ${missing.map(([command]) => command).join(', ')}`, {
    hint: `on Debian: apt-get install ${packages}`,
  })
}

const QEMU: Readonly<Record<string, string>> = { amd64: 'qemu-x86_64', arm64: 'qemu-aarch64' }

/** Programs of another architecture run through the kernel's binfmt_misc. */
export async function requireEmulation(wanted: string, machine: string): Promise<void> {
  if (wanted === machine || (await exists(`/proc/sys/fs/binfmt_misc/${QEMU[wanted]}`))) return
  throw new MusterError('BUILD_NEEDS', `this machine is ${machine} and cannot run programs for ${wanted}`, {
    hint: 'on Debian: apt-get install qemu-user-static binfmt-support; or build on such a machine',
  })
}
