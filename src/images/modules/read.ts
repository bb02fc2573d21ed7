import type { Dirent } from 'node:fs'
import { lstat, readFile, readdir, realpath, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { compareNames } from '../../lib/tree/entry.ts'
import { readYaml } from '../../lib/yaml/read.ts'
import type { MapTree, Tree } from '../../lib/yaml/tree.ts'
import { ModuleFile } from '../../site/module.ts'
import type { Problem } from '../../site/problems.ts'
import { plainOf, treeAt, validateTree } from '../../site/validate.ts'
import { NAME } from '../../site/values.ts'
import { moduleContents } from './contents.ts'
import { type ModuleSpec, type Requirement, SITE, modulesInvalid } from './spec.ts'

const MAX_MODULES = 1000
const MAX_YAML_BYTES = 2 ** 20

/** The modules in a folder; none when there is no such folder. Everything wrong with any of them is told at once. */
export async function readModules(dir: string, origin: string = SITE): Promise<Map<string, ModuleSpec>> {
  const modules = new Map<string, ModuleSpec>()
  const problems: Problem[] = []
  const folder = { dir: resolve(dir), label: origin === SITE ? `${basename(resolve(dir))}/` : `${origin}:`, origin }
  const entries = await listFolder(dir)
  if (entries.length > MAX_MODULES)
    throw modulesInvalid([problemAt(folder.label, `holds more than ${MAX_MODULES} folders`)])
  for (const entry of entries) {
    const result = await readModule(folder, entry)
    problems.push(...result.problems)
    if (result.module !== undefined) modules.set(result.module.name, result.module)
  }
  if (problems.length > 0) throw modulesInvalid(problems)
  return modules
}

/** In order of name; what starts with a dot is none of our business. */
async function listFolder(dir: string): Promise<Dirent[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  })
  return entries
    .filter(entry => !entry.name.startsWith('.') && (entry.isDirectory() || entry.isSymbolicLink()))
    .sort((a, b) => compareNames(a.name, b.name))
}

interface Folder {
  readonly dir: string
  /** What stands before a module's name when people are told of its files. */
  readonly label: string
  readonly origin: string
}

interface Result {
  readonly module?: ModuleSpec
  readonly problems: readonly Problem[]
}

async function readModule(folder: Folder, entry: Dirent): Promise<Result> {
  const dir = join(folder.dir, entry.name)
  const label = `${folder.label}${entry.name}`
  const hasYaml = await isThere(join(dir, 'module.yaml'))
  const hasScript = await isThere(join(dir, 'install.sh'))
  // A folder of the repository that is none, such as docs/.
  if (!hasYaml && !hasScript) return { problems: [] }
  if (entry.isSymbolicLink()) return failed(label, 'is a symbolic link: a module must be a folder of its own')
  if (!NAME.test(entry.name)) return failed(label, 'is not a name for a module (lower-case letters, digits, - and _)')
  if (!hasYaml) return failed(`${label}/module.yaml`, 'is missing; it may be empty')
  if (!hasScript) return failed(`${label}/install.sh`, 'is missing')

  const { digest, problems } = await moduleContents(dir)
  if (problems.length > 0)
    return {
      problems: problems.map(({ path, message }) =>
        problemAt([label, path].filter(part => part !== '').join('/'), message),
      ),
    }
  if (!(await stat(join(dir, 'install.sh'))).isFile()) return failed(`${label}/install.sh`, 'is not a file')
  const file = `${label}/module.yaml`
  const read = await readModuleFile(file, join(dir, 'module.yaml'))
  if ('problems' in read) return read
  return {
    problems: [],
    module: { name: entry.name, dir: await realpath(dir), origin: folder.origin, file, digest, ...read },
  }
}

type Settings = Pick<ModuleSpec, 'about' | 'requires' | 'packages' | 'network' | 'env'>

async function readModuleFile(file: string, path: string): Promise<Settings | { problems: Problem[] }> {
  const info = await stat(path)
  if (!info.isFile()) return failed(file, 'is not a file')
  if (info.size > MAX_YAML_BYTES) return failed(file, 'is too large: at most 1 MiB')
  const text = textOf(await readFile(path))
  if (text === undefined) return failed(file, 'is not text (not UTF-8)')
  const { tree, problems } = readYaml(text)
  if (problems.length > 0) return { problems: problems.map(problem => ({ file, ...problem })) }
  const map = tree === undefined || isNothing(tree) ? EMPTY : tree
  if (map.kind !== 'map')
    return { problems: [{ file, line: map.line, column: map.column, message: 'must be a map of keys and values' }] }
  const wrong = validateTree(file, map, ModuleFile)
  return wrong.length > 0 ? { problems: wrong } : settingsOf(map)
}

const EMPTY: MapTree = { kind: 'map', entries: new Map(), line: 1, column: 1 }

const isNothing = (tree: Tree): boolean => tree.kind === 'scalar' && tree.value === null

function settingsOf(tree: MapTree): Settings {
  const { about, packages, network, env } = ModuleFile.parse(plainOf(tree))
  const named = Object.entries(packages ?? {}).filter(([, names]) => names !== null && names !== undefined)
  return {
    ...(about !== undefined && about !== null && { about }),
    requires: requirementsOf(treeAt(tree, ['requires'])),
    packages: Object.fromEntries(named),
    network: network ?? false,
    env: env ?? {},
  }
}

const requirementsOf = (list: Tree | undefined): Requirement[] =>
  list?.kind !== 'list'
    ? []
    : list.items.flatMap(item =>
        item.kind === 'scalar' ? [{ name: String(item.value), line: item.line, column: item.column }] : [],
      )

function textOf(content: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

const problemAt = (file: string, message: string): Problem => ({ file, line: 1, column: 1, message })

const failed = (file: string, message: string): { problems: Problem[] } => ({ problems: [problemAt(file, message)] })

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )
