import type { Item } from './archive.ts'
import { archiveOf } from './archive.ts'
import { APPLETS, readBusybox } from './busybox.ts'
import { compressed, compressionFor } from './compress.ts'
import { moduleItems, type ModuleOptions } from './module-items.ts'
import { scriptItems } from './scripts.ts'
import { type Anchors, anchorItems } from './verifier.ts'

export interface InitramfsOptions extends ModuleOptions, Anchors {
  /** Path of a statically linked busybox for the machine that boots. */
  readonly busybox: string
  /** Directory of what runs in it. */
  readonly scripts: string
}

/**
 * What iPXE gives a kernel beside itself: enough to find the network, fetch the root, check every byte and start it. The same
 * bytes for the same options; see `initramfsInputs` for what they depend on beside the tree.
 */
export async function buildInitramfs(options: InitramfsOptions): Promise<Buffer> {
  const { tree, kernel, arch } = options
  const busybox = await readBusybox(options.busybox, arch)
  const items: readonly Item[] = [
    ...SKELETON,
    { path: 'bin/busybox', content: busybox, mode: 0o755 },
    ...APPLETS.map(name => ({ path: `bin/${name}`, linkTo: 'busybox' })),
    ...(await scriptItems(options.scripts)),
    ...(await anchorItems(options)),
    ...(await moduleItems(options)),
  ]
  return compressed(archiveOf(items), await compressionFor(tree, kernel))
}

/** The kernel opens the console before anything is mounted, and looks for modprobe in either place. */
export const SKELETON: readonly Item[] = [
  ...['proc', 'sys', 'dev', 'run', 'tmp'].map(path => ({ path, directory: true as const })),
  { path: 'dev/console', device: [5, 1] },
  { path: 'dev/null', device: [1, 3] },
  { path: 'sbin', linkTo: 'bin' },
  { path: 'usr/bin', linkTo: '../bin' },
  { path: 'usr/sbin', linkTo: '../bin' },
  { path: 'etc/passwd', content: 'root:x:0:0:root:/:/bin/sh\n' },
  { path: 'etc/resolv.conf', linkTo: '../tmp/resolv.conf' },
  { path: 'etc/group', content: 'root:x:0:\n' },
]
