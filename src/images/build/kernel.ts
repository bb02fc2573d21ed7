import { open } from 'node:fs/promises'
import { MusterError } from '../../lib/errors.ts'
import type { FileEntry } from '../../lib/tree/entry.ts'
import type { Recipe } from '../../site/recipe.ts'
import type { MergedTree } from '../layers/merge.ts'
import { globToRegExp } from './prune.ts'

export interface Kernel {
  readonly version: string
  readonly file: FileEntry
}

/** Where distributions keep it: /boot/vmlinuz-VERSION, or beside its modules. */
const PLACES = [/^boot\/(?:vmlinuz|vmlinux|Image)-(.+)$/, /^(?:usr\/)?lib\/modules\/([^/]+)\/vmlinuz$/]

/** The newest kernel of the tree that the recipe allows; none is fine unless the recipe asks for one. */
export function findKernel(tree: MergedTree, wanted: Recipe['kernel'], image: string): Kernel | undefined {
  if (wanted === 'none') return undefined
  const found = new Map<string, FileEntry>()
  for (const entry of tree.entries) {
    if (entry.type !== 'file') continue
    const version = PLACES.map(place => place.exec(entry.path)?.[1]).find(Boolean)
    if (version !== undefined && !found.has(version)) found.set(version, entry)
  }
  const matcher = globToRegExp(wanted?.version ?? '*')
  const versions = [...found.keys()].filter(version => matcher.test(version)).sort(compareVersions)
  const newest = versions.at(-1)
  const file = newest === undefined ? undefined : found.get(newest)
  if (newest !== undefined && file !== undefined) return { version: newest, file }
  if (wanted === undefined) return undefined
  const there = [...found.keys()].join(', ')
  throw new MusterError('RECIPE_INVALID', `${image}: kernel: no kernel ${wanted.version} in the image`, {
    hint: there === '' ? 'name its package under packages, such as linux-image-amd64' : `there is ${there}`,
  })
}

const HEADER_BYTES = 65_536
const SIGNATURE_AT = 0x202
const VERSION_AT = 0x20e

/** The release an x86 kernel says it is, from its boot header (Documentation/arch/x86/boot.rst); undefined for others. */
export async function versionOf(file: string): Promise<string | undefined> {
  await using handle = await open(file, 'r')
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
  if (bytesRead < VERSION_AT + 2 || buffer.toString('latin1', SIGNATURE_AT, SIGNATURE_AT + 4) !== 'HdrS')
    return undefined
  const at = buffer.readUInt16LE(VERSION_AT) + 0x200
  return /^[\x21-\x7e]{1,64}/.exec(buffer.toString('latin1', at, at + 64))?.[0]
}

/** 6.1.0-9 before 6.1.0-10, 427.el9 before 427.13.1.el9_4: numbers count as numbers, and are newer than words. */
export function compareVersions(a: string, b: string): number {
  const left = partsOf(a)
  const right = partsOf(b)
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [x, y] = [left[at], right[at]]
    if (x === undefined || y === undefined) return x === undefined ? -1 : 1
    const [m, n] = [Number(x), Number(y)]
    if (Number.isNaN(m) !== Number.isNaN(n)) return Number.isNaN(m) ? -1 : 1
    const order = Number.isNaN(m) ? x.localeCompare(y, 'en') : m - n
    if (order !== 0) return order
  }
  return 0
}

const partsOf = (version: string): readonly string[] => version.match(/\d+|[A-Za-z]+/g) ?? []
