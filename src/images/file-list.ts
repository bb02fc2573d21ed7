import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { zstdCompress, zstdDecompress } from 'node:zlib'
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
  const artefact = artefactOf(manifest, 'files')
  if (artefact === undefined) throw new MusterError('IMAGE_INCOMPLETE', `image ${manifest.name} has no list of files`)
  const text = await decompress(await store.read(artefact.sha256, MAX_BYTES), { maxOutputLength: MAX_BYTES })
  const entries = text
    .toString('utf8')
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as Entry)
  if (fileListDigest(entries) !== manifest.tree)
    throw new MusterError('IMAGE_DAMAGED', `the list of files of ${manifest.name} is not the one its manifest names`)
  return entries
}
