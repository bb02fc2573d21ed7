import { buildInitramfs } from '../../boot/initramfs/build.ts'
import { type Arch, findBusybox } from '../../boot/initramfs/busybox.ts'
import { initramfsInputs } from '../../boot/initramfs/inputs.ts'
import { SCRIPTS } from '../../boot/initramfs/scripts.ts'
import type { Anchors } from '../../boot/initramfs/verifier.ts'
import type { Recipe } from '../../site/recipe.ts'
import type { MergedTree } from '../layers/merge.ts'

/** The initramfs of ours that fetches the root of an image, made for the kernel of that image. */
export async function initramfsFor(
  tree: MergedTree,
  version: string,
  kernel: Recipe['kernel'],
  arch: string,
  anchors: Anchors,
): Promise<Buffer> {
  const extraModules = kernel === 'none' ? [] : (kernel?.modules ?? [])
  const busybox = await findBusybox(arch as Arch)
  return buildInitramfs({
    tree,
    kernel: version,
    arch: arch as Arch,
    extraModules,
    busybox,
    scripts: SCRIPTS,
    ...anchors,
  })
}

/** What it depends on beside the image; nothing where there will be none. */
export async function initramfsKey(
  kernel: Recipe['kernel'],
  arch: string,
  anchors: Anchors,
): Promise<string | undefined> {
  if (kernel === 'none') return undefined
  // Without a busybox an image with a kernel cannot be built, which is said then; one without needs none.
  const busybox = await findBusybox(arch as Arch).catch(() => undefined)
  return busybox === undefined ? undefined : initramfsInputs({ busybox, scripts: SCRIPTS, ...anchors })
}
