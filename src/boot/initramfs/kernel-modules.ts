import { readFile } from 'node:fs/promises'
import type { Entry, FileTree } from '../../lib/tree/entry.ts'
import { MODULE_SUFFIX } from './module-info.ts'

/** A tree that can be asked for paths, as running programs would find them. */
export interface SourceTree extends FileTree {
  get(path: string): Entry | undefined
  /** Follows symbolic links inside the tree. The last part need not exist. */
  resolve(path: string): string
}

/** The modules of one kernel, as they lie in a tree. Names are equal whether they have - or _. */
export interface KernelModules {
  /** Where they are. */
  readonly dir: string
  readonly names: readonly string[]
  /** Path below the directory. */
  pathOf(name: string): string | undefined
  /** What it needs, as depmod found it; undefined where depmod never ran. */
  dependenciesOf(name: string): readonly string[] | undefined
  isBuiltIn(name: string): boolean
  /** Modules that answer to another name. */
  namedBy(alias: string): readonly string[]
  /** The list of built-in modules as it is. */
  readonly builtIn: string
}

export async function kernelModules(tree: SourceTree, version: string): Promise<KernelModules> {
  const dir = tree.resolve(`lib/modules/${version}`)
  const read = (name: string): Promise<string> => textOf(tree, `${dir}/${name}`)
  const dependencies = parseDependencies(await read('modules.dep'))
  // Depmod's choice where there is one: a driver of a vendor beside the kernel's own.
  const paths = dependencies.size > 0 ? [...dependencies.keys()] : pathsBelow(tree, dir)
  const byName = new Map(paths.map(path => [moduleName(path), path]))
  const builtIn = await read('modules.builtin')
  const builtInNames = new Set(linesOf(builtIn).map(moduleName))
  const aliases = parseAliases(await read('modules.alias'))
  return {
    dir,
    names: [...byName.keys()],
    pathOf: name => byName.get(plain(name)),
    dependenciesOf: name => dependencies.get(byName.get(plain(name)) ?? '')?.map(moduleName),
    isBuiltIn: name => builtInNames.has(plain(name)),
    namedBy: alias => aliases.get(alias) ?? [],
    builtIn,
  }
}

export const plain = (name: string): string => name.replaceAll('-', '_')

const moduleName = (path: string): string => plain(path.slice(path.lastIndexOf('/') + 1).replace(MODULE_SUFFIX, ''))

/** `kernel/net/8021q/8021q.ko: kernel/net/802/mrp.ko kernel/net/802/garp.ko` */
function parseDependencies(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of linesOf(text)) {
    const colon = line.indexOf(':')
    if (colon > 0)
      found.set(
        line.slice(0, colon),
        line
          .slice(colon + 1)
          .split(' ')
          .filter(Boolean),
      )
  }
  return found
}

/** Only whole names; those with wildcards are for devices. */
function parseAliases(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of linesOf(text)) {
    const [keyword, alias = '', name = ''] = line.split(' ')
    if (keyword !== 'alias' || /[*?[]/.test(alias)) continue
    found.set(alias, [...(found.get(alias) ?? []), plain(name)])
  }
  return found
}

const pathsBelow = (tree: FileTree, dir: string): string[] =>
  tree.entries
    .filter(({ type, path }) => type === 'file' && path.startsWith(`${dir}/`) && MODULE_SUFFIX.test(path))
    .map(({ path }) => path.slice(dir.length + 1))

/** Empty when it is not there. */
export async function textOf(tree: SourceTree, path: string): Promise<string> {
  return (await bytesOf(tree, path))?.toString('utf8') ?? ''
}

export async function bytesOf(tree: SourceTree, path: string): Promise<Buffer | undefined> {
  const entry = tree.get(tree.resolve(path))
  return entry?.type === 'file' ? readFile(tree.locate(entry)) : undefined
}

const linesOf = (text: string): string[] => text.split('\n').filter(Boolean)
