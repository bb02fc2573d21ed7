import { humanSize } from '../lib/size.ts'
import { type Entry, compareNames, parentOf } from '../lib/tree/entry.ts'
import { type InstalledPackage, comparePackages } from './packages/package.ts'

export interface Largest {
  /** Bytes of all files. */
  readonly total: number
  readonly packages: readonly InstalledPackage[]
  /** With everything below them. */
  readonly directories: readonly { readonly path: string; readonly size: number }[]
}

const COUNT = 20

/** A directory that is almost nothing but one below it says nothing that one does not say better. */
const ONE_CHILD = 0.9

/** What makes an image large: where to look first when it should be smaller. */
export function largest(packages: readonly InstalledPackage[], entries: readonly Entry[], count = COUNT): Largest {
  const sizes = directorySizes(entries)
  const largestChild = new Map<string, number>()
  for (const [path, size] of sizes) {
    const parent = parentOf(path)
    if (path !== '') largestChild.set(parent, Math.max(largestChild.get(parent) ?? 0, size))
  }
  const total = sizes.get('') ?? 0
  const directories = [...sizes]
    .filter(([path, size]) => path !== '' && size > 0 && (largestChild.get(path) ?? 0) <= size * ONE_CHILD)
    .map(([path, size]) => ({ path, size }))
    .sort((a, b) => b.size - a.size || compareNames(a.path, b.path))
  return {
    total,
    packages: packages.toSorted((a, b) => b.size - a.size || comparePackages(a, b)).slice(0, count),
    directories: directories.slice(0, count),
  }
}

/** Of every directory, with what is below it. Hard links count where their first name is. */
function directorySizes(entries: readonly Entry[]): Map<string, number> {
  const own = new Map<string, number>()
  for (const entry of entries) {
    if (entry.type !== 'file' || entry.linkTo !== undefined) continue
    const parent = parentOf(entry.path)
    own.set(parent, (own.get(parent) ?? 0) + entry.size)
  }
  const sizes = new Map<string, number>()
  for (const [directory, size] of own) {
    for (let path = directory; ; path = parentOf(path)) {
      sizes.set(path, (sizes.get(path) ?? 0) + size)
      if (path === '') break
    }
  }
  return sizes
}

/** For people; sizes and names each in a column. */
export function largestText({ total, packages, directories }: Largest): string {
  const lines = [
    `total ${humanSize(total)}`,
    ...section('packages', packages, ({ size, name, version }) => [size, `${name} ${version}`]),
    ...section('directories', directories, ({ size, path }) => [size, `/${path}`]),
  ]
  return `${lines.join('\n')}\n`
}

function section<Item>(
  title: string,
  items: readonly Item[],
  row: (item: Item) => [size: number, what: string],
): string[] {
  if (items.length === 0) return []
  const rows = items.map(row).map(([size, what]) => [humanSize(size), what] as const)
  const width = Math.max(...rows.map(([size]) => size.length))
  return ['', `largest ${title}`, ...rows.map(([size, what]) => `  ${size.padStart(width)}  ${what}`)]
}
