import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { zstdCompress, zstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import type { Entry } from '../lib/tree/entry.ts'
import { type Digest, type Manifest, artefactOf } from './manifest.ts'
import type { ImageStore } from './store/store.ts'

/** The artefact `files`: every entry of the root, one JSON object per line, compressed. */
const textOf = (entries: readonly Entry[]): string => entries.map(entry => `${JSON.stringify(entry)}\n`).join('')

/** Of the list as text: the identity of a tree, whatever forms it is packed in. */
export const fileListDigest = (entries: readonly Entry[]): Digest =>
  `sha256:${createHash('sha256').update(textOf(entries)).digest('hex')}`

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

export const packFileList = (entries: readonly Entry[]): Promise<Buffer> => compress(Buffer.from(textOf(entries)))

/** Of tens of millions of files. */
const MAX_BYTES = 2 ** 31

export async function readFileList(store: ImageStore, manifest: Manifest): Promise<Entry[]> {
  return (await readLines(store, manifest)).map((line, at) => entryIn(line, at + 1, manifest))
}

/** Of two images, the entries that are not the same in both; much sooner there than two whole lists. */
export async function readChangedFiles(
  store: ImageStore,
  a: Manifest,
  b: Manifest,
): Promise<{ readonly before: Entry[]; readonly after: Entry[] }> {
  const [before, after] = [await readLines(store, a), await readLines(store, b)]
  const [had, has] = [new Set(before), new Set(after)]
  return { before: entriesBut(has, before, a), after: entriesBut(had, after, b) }
}

const entriesBut = (others: ReadonlySet<string>, lines: readonly string[], manifest: Manifest): Entry[] =>
  lines.flatMap((line, at) => (others.has(line) ? [] : [entryIn(line, at + 1, manifest)]))

async function readLines(store: ImageStore, manifest: Manifest): Promise<string[]> {
  const artefact = artefactOf(manifest, 'files')
  if (artefact === undefined) throw new MusterError('IMAGE_INCOMPLETE', `image ${manifest.name} has no list of files`)
  const packed = await store.read(artefact.sha256, MAX_BYTES)
  const text = await decompress(packed, { maxOutputLength: MAX_BYTES }).catch((error: unknown) => {
    throw damaged(manifest, 'cannot be read', error)
  })
  if (`sha256:${createHash('sha256').update(text).digest('hex')}` !== manifest.tree)
    throw damaged(manifest, 'is not the one its manifest names')
  const lines = text.toString('utf8').split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function entryIn(line: string, number: number, manifest: Manifest): Entry {
  try {
    const entry: unknown = JSON.parse(line)
    ListedEntry.parse(entry)
    return entry as Entry
  } catch (error) {
    throw damaged(manifest, `is damaged in line ${number}`, error)
  }
}

const damaged = (manifest: Manifest, what: string, cause?: unknown): MusterError =>
  new MusterError('IMAGE_DAMAGED', `the list of files of ${manifest.name} ${what}`, { cause })

/** Whoever made the image may not be a friend: files are looked up below a directory by these paths. */
const Path = z.string().refine(path => path === '' || path.split('/').every(isPlainName), 'is not a path inside')
const isPlainName = (name: string): boolean => !['', '.', '..'].includes(name) && !name.includes('\0')
const Count = z.int().min(0)
const common = {
  path: Path,
  mode: z.int().min(0).max(0o7777),
  uid: Count,
  gid: Count,
  mtime: z.int(),
  xattrs: z.record(z.string(), z.base64()).optional(),
}
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const ListedEntry = z.discriminatedUnion('type', [
  z.strictObject({ ...common, type: z.literal('directory') }),
  z.strictObject({ ...common, type: z.literal('file'), size: Count, sha256, linkTo: Path.optional() }),
  z.strictObject({ ...common, type: z.literal('symlink'), target: z.string() }),
  z.strictObject({ ...common, type: z.enum(['char', 'block', 'fifo', 'socket']), major: Count, minor: Count }),
])
