import { type Entry, parentOf } from '../lib/tree/entry.ts'
import { type InstalledPackage, comparePackages } from './packages/package.ts'
import { compareVersions } from './packages/versions/compare.ts'

/** What is compared of an image. Entries are a whole tree, in the order of FileTree. */
export interface ImageContent {
  readonly packages: readonly InstalledPackage[]
  readonly entries: readonly Entry[]
}

interface Change<Value> {
  readonly before: Value
  readonly after: Value
}

const ASPECTS = ['type', 'content', 'target', 'mode', 'owner', 'xattrs'] as const
export type Aspect = (typeof ASPECTS)[number]

export interface FileChange extends Change<Entry> {
  readonly path: string
  /** What of it has changed; its time alone is no change. */
  readonly what: readonly Aspect[]
}

export interface SizeChange extends Change<number> {
  readonly delta: number
}

export interface ImageDifference {
  readonly packages: {
    readonly added: readonly InstalledPackage[]
    readonly removed: readonly InstalledPackage[]
    readonly upgraded: readonly Change<InstalledPackage>[]
    readonly downgraded: readonly Change<InstalledPackage>[]
  }
  readonly files: {
    readonly added: readonly Entry[]
    readonly removed: readonly Entry[]
    readonly changed: readonly FileChange[]
  }
  readonly size: SizeChange & {
    /** Where it grew or shrank most. Every file counts for one of them: the deltas of all would add up to the total. */
    readonly directories: readonly (SizeChange & { readonly path: string })[]
  }
}

const TOP_DIRECTORIES = 20

/** What turned image `a` into image `b`. */
export function diffImages(a: ImageContent, b: ImageContent, top = TOP_DIRECTORIES): ImageDifference {
  return {
    packages: diffPackages(a.packages, b.packages),
    files: diffFiles(a.entries, b.entries),
    size: diffSizes(a.entries, b.entries, top),
  }
}

/**
 * A package is upgraded when there was one of this name and now there is one of another version. Where several versions
 * of a name are installed side by side (rpm does so with kernels), each is a package of its own; so is a kernel of
 * Debian, which has its version in its name.
 */
export function diffPackages(
  a: readonly InstalledPackage[],
  b: readonly InstalledPackage[],
): ImageDifference['packages'] {
  const before = byName(a)
  const after = byName(b)
  const added: InstalledPackage[] = []
  const removed: InstalledPackage[] = []
  const upgraded: Change<InstalledPackage>[] = []
  const downgraded: Change<InstalledPackage>[] = []
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const { gone, come, pairs } = matchVersions(before.get(key) ?? [], after.get(key) ?? [])
    removed.push(...gone)
    added.push(...come)
    for (const pair of pairs) {
      const order = compareVersions(pair.before.manager, pair.before.version, pair.after.version)
      if (order < 0) upgraded.push(pair)
      else if (order > 0) downgraded.push(pair)
      else {
        // Written otherwise, yet neither newer nor older.
        removed.push(pair.before)
        added.push(pair.after)
      }
    }
  }
  const byBefore = (one: Change<InstalledPackage>, other: Change<InstalledPackage>): number =>
    comparePackages(one.before, other.before)
  return {
    added: added.sort(comparePackages),
    removed: removed.sort(comparePackages),
    upgraded: upgraded.sort(byBefore),
    downgraded: downgraded.sort(byBefore),
  }
}

const byName = (packages: readonly InstalledPackage[]): Map<string, InstalledPackage[]> =>
  Map.groupBy(packages, ({ manager, name }) => `${manager} ${name}`)

const exact = ({ arch, version }: InstalledPackage): string => `${arch} ${version}`

interface Matched {
  readonly gone: readonly InstalledPackage[]
  readonly come: readonly InstalledPackage[]
  readonly pairs: readonly Change<InstalledPackage>[]
}

/** Of one name: by architecture where each has one; else, if there is one on each side, across (from `all` to amd64). */
function matchVersions(before: readonly InstalledPackage[], after: readonly InstalledPackage[]): Matched {
  const [only] = before
  const [onlyNow] = after
  if (only !== undefined && onlyNow !== undefined && before.length === 1 && after.length === 1) {
    const pairs = exact(only) === exact(onlyNow) ? [] : [{ before: only, after: onlyNow }]
    return { gone: [], come: [], pairs }
  }
  const fresh = Map.groupBy(after, ({ arch }) => arch)
  const pairs: Change<InstalledPackage>[] = []
  for (const [arch, [old, ...others]] of Map.groupBy(before, ({ arch }) => arch)) {
    const [now, ...more] = fresh.get(arch) ?? []
    const isAlone = others.length === 0 && more.length === 0
    if (old !== undefined && now !== undefined && isAlone && exact(old) !== exact(now))
      pairs.push({ before: old, after: now })
  }
  const paired = new Set(pairs.map(pair => pair.before.arch))
  const had = new Set(before.map(exact))
  const has = new Set(after.map(exact))
  return {
    gone: before.filter(one => !has.has(exact(one)) && !paired.has(one.arch)),
    come: after.filter(one => !had.has(exact(one)) && !paired.has(one.arch)),
    pairs,
  }
}

export function diffFiles(a: readonly Entry[], b: readonly Entry[]): ImageDifference['files'] {
  const before = new Map(a.map(entry => [entry.path, entry]))
  const after = new Set(b.map(entry => entry.path))
  const added: Entry[] = []
  const changed: FileChange[] = []
  for (const entry of b) {
    const old = before.get(entry.path)
    if (old === undefined) {
      added.push(entry)
      continue
    }
    const what = changesOf(old, entry)
    if (what.length > 0) changed.push({ path: entry.path, what, before: old, after: entry })
  }
  return { added, removed: a.filter(entry => !after.has(entry.path)), changed }
}

const HAS_CHANGED: Readonly<Record<Aspect, (a: Entry, b: Entry) => boolean>> = {
  type: (a, b) => a.type !== b.type,
  content: (a, b) => a.type === 'file' && b.type === 'file' && a.sha256 !== b.sha256,
  target: (a, b) => targetOf(a) !== targetOf(b),
  // Linux looks at no mode of a symbolic link.
  mode: (a, b) => a.type !== 'symlink' && a.mode !== b.mode,
  owner: (a, b) => a.uid !== b.uid || a.gid !== b.gid,
  // Hardly any file has some: that is told without looking further.
  xattrs: (a, b) => a.xattrs !== b.xattrs && xattrsOf(a) !== xattrsOf(b),
}

/** Of something that has become another thing, only that. */
const changesOf = (a: Entry, b: Entry): Aspect[] =>
  a.type === b.type ? ASPECTS.filter(aspect => HAS_CHANGED[aspect](a, b)) : ['type']

/** Where a link leads; which device a device is. */
function targetOf(entry: Entry): string {
  if (entry.type === 'symlink') return entry.target
  return entry.type === 'char' || entry.type === 'block' ? `${entry.major}:${entry.minor}` : ''
}

const xattrsOf = ({ xattrs = {} }: Entry): string =>
  JSON.stringify(Object.entries(xattrs).sort(([a], [b]) => (a < b ? -1 : 1)))

const DEPTH = 3

function diffSizes(a: readonly Entry[], b: readonly Entry[], top: number): ImageDifference['size'] {
  const before = sizesByDirectory(a)
  const after = sizesByDirectory(b)
  const changeOf = (path: string): SizeChange & { path: string } => {
    const [was = 0, is = 0] = [before.get(path), after.get(path)]
    return { path, before: was, after: is, delta: is - was }
  }
  const directories = [...new Set([...before.keys(), ...after.keys()])]
    .map(changeOf)
    .filter(({ delta }) => delta !== 0)
    .sort((one, other) => Math.abs(other.delta) - Math.abs(one.delta) || (one.path < other.path ? -1 : 1))
  const [was, is] = [sum(before), sum(after)]
  return { before: was, after: is, delta: is - was, directories: directories.slice(0, top) }
}

/** Of hard links only the first counts. */
function sizesByDirectory(entries: readonly Entry[]): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const entry of entries) {
    if (entry.type !== 'file' || entry.linkTo !== undefined) continue
    const directory = topOf(parentOf(entry.path))
    sizes.set(directory, (sizes.get(directory) ?? 0) + entry.size)
  }
  return sizes
}

/** usr/lib/modules/6.1.0/kernel/fs counts for usr/lib/modules, usr/bin for itself. */
function topOf(directory: string): string {
  let end = -1
  for (let depth = 0; depth < DEPTH; depth++) {
    end = directory.indexOf('/', end + 1)
    if (end < 0) return directory
  }
  return directory.slice(0, end)
}

const sum = (sizes: ReadonlyMap<string, number>): number => [...sizes.values()].reduce((total, size) => total + size, 0)
