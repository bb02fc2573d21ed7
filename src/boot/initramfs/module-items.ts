import { compareNames } from '../../lib/tree/entry.ts'
import type { Item } from './archive.ts'
import { bytesOf, kernelModules, plain, type SourceTree } from './kernel-modules.ts'
import { loadOrder, type NeededModule, NeededModules } from './needed-modules.ts'
import type { Arch } from './busybox.ts'
import { DISCOVERY, NETWORK, NETWORK_ARM64, ROOT } from './usual-modules.ts'

export interface ModuleOptions {
  readonly tree: SourceTree
  readonly kernel: string
  readonly arch: Arch
  readonly extraModules: readonly string[]
}

/** The modules of a kernel that an initramfs carries, with the lists modprobe reads and the firmware they ask for. */
export async function moduleItems({ tree, kernel, arch, extraModules }: ModuleOptions): Promise<Item[]> {
  const source = await kernelModules(tree, kernel)
  const needed = new NeededModules(tree, source)
  for (const name of [...NETWORK, ...ROOT, ...(arch === 'arm64' ? NETWORK_ARM64 : [])]) await needed.add(name)
  for (const name of extraModules) await needed.require(name, kernel)
  const always = new Set(needed.all.map(({ name }) => name))
  for (const name of DISCOVERY) await needed.add(name)
  const modules = needed.all
  const to = `lib/modules/${kernel}`
  return [
    ...modules.map(({ path, content }) => ({ path: `${to}/${path}`, content })),
    { path: `${to}/modules.dep`, content: dependencyLines(modules) },
    { path: `${to}/modules.alias`, content: aliasLines(modules.filter(({ name }) => always.has(name))) },
    // Joined to the others by a machine that is being discovered: no other has to wait for its disks.
    { path: `${to}/modules.alias.discover`, content: aliasLines(modules.filter(({ name }) => !always.has(name))) },
    { path: `${to}/modules.builtin`, content: source.builtIn },
    { path: 'lib/muster/modules', content: extraModules.map(name => `${plain(name)}\n`).join('') },
    ...(await firmwareItems(tree, modules)),
  ]
}

function dependencyLines(modules: readonly NeededModule[]): string {
  const byName = new Map(modules.map(module => [module.name, module]))
  return modules
    .map(
      ({ name, path }) =>
        `${[`${path}:`, ...loadOrder(name, byName).map(other => byName.get(other)?.path)].join(' ')}\n`,
    )
    .join('')
}

const aliasLines = (modules: readonly NeededModule[]): string =>
  modules.flatMap(({ name, info }) => info.aliases.map(alias => `alias ${alias} ${name}\n`)).join('')

/** As far as the image has it: some network cards do nothing without. */
async function firmwareItems(tree: SourceTree, modules: readonly NeededModule[]): Promise<Item[]> {
  const wanted = [...new Set(modules.flatMap(({ info }) => info.firmware))].sort(compareNames)
  const items: Item[] = []
  for (const name of wanted)
    for (const suffix of ['', '.xz', '.zst']) {
      const content = await bytesOf(tree, `lib/firmware/${name}${suffix}`)
      if (content !== undefined) items.push({ path: `lib/firmware/${name}${suffix}`, content })
    }
  return items
}
