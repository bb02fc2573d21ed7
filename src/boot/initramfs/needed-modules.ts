import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import { bytesOf, type KernelModules, plain, type SourceTree } from './kernel-modules.ts'
import { MODULE_SUFFIX, type ModuleInfo, moduleInfo, uncompressed } from './module-info.ts'

export interface NeededModule {
  readonly name: string
  /** Below the directory of the modules, without the suffix of a compression. */
  readonly path: string
  readonly content: Buffer
  readonly info: ModuleInfo
  readonly depends: readonly string[]
}

/** Modules by name, with everything they need. */
export class NeededModules {
  readonly #tree: SourceTree
  readonly #kernel: KernelModules
  readonly #found = new Map<string, NeededModule>()

  constructor(tree: SourceTree, kernel: KernelModules) {
    this.#tree = tree
    this.#kernel = kernel
  }

  /** In the order of their names. */
  get all(): readonly NeededModule[] {
    return [...this.#found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** A module or alias the kernel lacks or has built in is passed over. */
  async add(name: string): Promise<void> {
    const own = this.#kernel.pathOf(name)
    if (own === undefined) {
      if (this.#kernel.isBuiltIn(name)) return
      for (const other of this.#kernel.namedBy(name))
        if (this.#kernel.pathOf(other) !== undefined) await this.add(other)
      return
    }
    if (this.#found.has(plain(name))) return
    const path = `${this.#kernel.dir}/${own}`
    const bytes = await bytesOf(this.#tree, path)
    if (bytes === undefined) return
    const content = await uncompressed(path, bytes)
    const info = moduleInfo(content)
    const depends = (this.#kernel.dependenciesOf(name) ?? info.depends).map(plain)
    this.#found.set(plain(name), {
      name: plain(name),
      path: own.replace(MODULE_SUFFIX, '.ko'),
      content,
      info,
      depends,
    })
    for (const other of [...depends, ...info.softdeps]) await this.add(other)
  }

  /** Somebody asked for it by name: it must be there. */
  async require(name: string, kernel: string): Promise<void> {
    const { names } = this.#kernel
    if (this.#kernel.pathOf(name) === undefined && !this.#kernel.isBuiltIn(name))
      throw new MusterError(
        'RECIPE_INVALID',
        `kernel.modules: kernel ${kernel} has no module ${name}${didYouMean(plain(name), names)}`,
        { hint: 'is it spelt right, and its package in the image?' },
      )
    await this.add(name)
  }
}

/**
 * What must be loaded before a module, the last of it first, as modprobe reads it: whatever a module needs stands behind it.
 */
export function loadOrder(name: string, modules: ReadonlyMap<string, NeededModule>): string[] {
  const done: string[] = []
  const seen = new Set<string>()
  const visit = (one: string): void => {
    const module = modules.get(one)
    if (module === undefined || seen.has(one)) return
    seen.add(one)
    for (const other of module.depends) visit(other)
    done.push(one)
  }
  visit(name)
  return done.slice(0, -1).reverse()
}
