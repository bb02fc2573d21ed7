/** Trees for tests: made of values, and read back from what a tool unpacked. */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { exec } from '../exec.ts'
import { compareNames, comparePaths, type Entry, type FileEntry, type FileTree } from '../tree/entry.ts'

interface Common {
  readonly path: string
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
  readonly mtime?: number
  readonly xattrs?: Readonly<Record<string, string>>
}

export type Item = Common &
  (
    | { readonly type: 'directory' }
    | { readonly type: 'file'; readonly content: string | Uint8Array; readonly linkTo?: string }
    | { readonly type: 'symlink'; readonly target: string }
    | { readonly type: 'char' | 'block'; readonly major: number; readonly minor: number }
    | { readonly type: 'fifo' | 'socket' }
  )

/** A tree in the right order, with a root unless there is one. Contents are kept in the directory by their digest. */
export function treeOf(items: readonly Item[], dir: string): FileTree {
  mkdirSync(dir, { recursive: true })
  const all = items.some(({ path }) => path === '') ? items : [{ path: '', type: 'directory' as const }, ...items]
  const entries = all.map(item => entryOf(item, dir)).sort((a, b) => comparePaths(a.path, b.path))
  return { entries, locate: file => join(dir, file.sha256) }
}

function entryOf(item: Item, dir: string): Entry {
  const { path, mode, uid = 0, gid = 0, mtime = 1_700_000_000, xattrs } = item
  const usual = item.type === 'directory' ? 0o755 : item.type === 'symlink' ? 0o777 : 0o644
  const common = { path, mode: mode ?? usual, uid, gid, mtime, ...(xattrs && { xattrs }) }
  if (item.type === 'directory') return { ...common, type: item.type }
  if (item.type === 'symlink') return { ...common, type: item.type, target: item.target }
  if (item.type !== 'file') {
    const { major, minor } = 'major' in item ? item : { major: 0, minor: 0 }
    return { ...common, type: item.type, major, minor }
  }
  const content = Buffer.from(item.content)
  const sha256 = createHash('sha256').update(content).digest('hex')
  if (!existsSync(join(dir, sha256))) writeFileSync(join(dir, sha256), content)
  return { ...common, type: 'file', size: content.length, sha256, ...(item.linkTo && { linkTo: item.linkTo }) }
}

/** What lies in a directory, in the form of a tree's entries. */
export async function entriesIn(root: string): Promise<Entry[]> {
  const attributes = await xattrsIn(root)
  const firstNames = new Map<number, string>()
  const entries: Entry[] = []
  const visit = (path: string): void => {
    const full = join(root, path)
    const stat = lstatSync(full)
    const xattrs = attributes.get(path)
    const { uid, gid } = stat
    const mtime = Math.floor(stat.mtimeMs / 1000)
    const common = { path, mode: stat.mode & 0o7777, uid, gid, mtime, ...(xattrs && { xattrs }) }
    if (stat.isDirectory()) {
      entries.push({ ...common, type: 'directory' })
      for (const name of readdirSync(full).sort(compareNames)) visit(path === '' ? name : `${path}/${name}`)
    } else if (stat.isSymbolicLink()) entries.push({ ...common, type: 'symlink', target: readlinkSync(full) })
    else if (stat.isFile()) {
      const linkTo = firstNames.get(stat.ino)
      firstNames.set(stat.ino, linkTo ?? path)
      const sha256 = createHash('sha256').update(readFileSync(full)).digest('hex')
      entries.push({ ...common, type: 'file', size: stat.size, sha256, ...(linkTo !== undefined && { linkTo }) })
    } else {
      const major = (stat.rdev >>> 8) & 0xfff
      const minor = (stat.rdev & 0xff) | ((stat.rdev >>> 12) & 0xfff00)
      const type = stat.isFIFO() ? 'fifo' : stat.isSocket() ? 'socket' : stat.isBlockDevice() ? 'block' : 'char'
      entries.push({ ...common, type, major, minor })
    }
  }
  visit('')
  return entries
}

async function xattrsIn(root: string): Promise<Map<string, Record<string, string>>> {
  const args = ['-R', '-P', '-h', '-m', '-', '-e', 'base64', '-d', '.']
  const { stdout } = await exec('getfattr', args, { cwd: root, env: { LC_ALL: 'C' } })
  const found = new Map<string, Record<string, string>>()
  for (const paragraph of stdout.toString().split('\n\n')) {
    const [head = '', ...lines] = paragraph.trim().split('\n')
    const pairs = lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 3)] as const)
    if (pairs.length > 0) found.set(head.slice('# file: '.length).replace(/^\.\/?/, ''), Object.fromEntries(pairs))
  }
  return found
}

/** Files below a directory that this process has open. */
export const openFilesIn = (dir: string): string[] =>
  readdirSync('/proc/self/fd')
    .map(descriptor => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`)
      } catch {
        // The one that listed the directory is gone by now.
        return ''
      }
    })
    .filter(file => file.startsWith(dir))

/** The same bytes for the same seed; they do not compress. */
export function noise(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length)
  let state = seed * 2_654_435_761 + 1
  for (let at = 0; at < length; at++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x297a2d39
    bytes[at] = state >>> 24
  }
  return bytes
}

/** Words that compress about as well as programs do. */
export const words = (length: number, seed: number): Buffer => {
  const raw = noise(Math.ceil(length / 4), seed)
  return Buffer.from(raw.toString('hex').repeat(2)).subarray(0, length)
}

/** A tree that notes which files are read. */
export function watched(tree: FileTree): { readonly tree: FileTree; readonly read: string[] } {
  const read: string[] = []
  const locate = (file: FileEntry): string => {
    read.push(file.path)
    return tree.locate(file)
  }
  return { read, tree: { ...tree, locate } }
}

/** Random trees for properties: files of these sizes in a few directories, and the same after some changes. */
export function anyChange(sizes: fc.Arbitrary<number>, maxLength: number): fc.Arbitrary<readonly [Item[], Item[]]> {
  const file = fc.record({
    path: fc.tuple(fc.constantFrom('', 'a/', 'b/', 'b/c/'), fc.nat(999)).map(([dir, n]) => `${dir}f${n}`),
    size: sizes,
    seed: fc.nat(5),
    mode: fc.constantFrom(0o644, 0o755),
  })
  const files = fc.uniqueArray(file, { maxLength, selector: ({ path }) => path })
  const change = fc.record({ at: fc.nat(), kind: fc.constantFrom('content', 'mode', 'gone', 'new'), file })
  return fc.tuple(files, fc.array(change, { maxLength: 3 })).map(([before, changes]) => {
    const after = new Map<string, AnyFile>(before.map(file => [file.path, file]))
    for (const { at, kind, file } of changes) {
      const old = before[at % Math.max(before.length, 1)] ?? file
      if (kind === 'content') after.set(old.path, { ...old, size: file.size, seed: file.seed + 10 })
      else if (kind === 'mode') after.set(old.path, { ...old, mode: 0o600 })
      else if (kind === 'gone') after.delete(old.path)
      else after.set(file.path, file)
    }
    return [itemsOf(before), itemsOf([...after.values()])]
  })
}

type AnyFile = Readonly<Record<'size' | 'seed' | 'mode', number>> & { readonly path: string }

const itemsOf = (files: readonly AnyFile[]): Item[] => [
  ...['a', 'b', 'b/c'].map(path => ({ path, type: 'directory' as const })),
  ...files.map(({ path, size, seed, mode }) => {
    const content = seed % 3 === 0 ? noise(Math.min(size, 300_000), seed) : Buffer.alloc(size, words(5000, seed))
    return { path, type: 'file' as const, content, mode }
  }),
]
