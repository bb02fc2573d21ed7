import { open, type FileHandle } from 'node:fs/promises'
import { MusterError } from '../errors.ts'
import type { Entry, FileEntry, FileTree } from '../tree/entry.ts'
import { paddingOf } from './bytes.ts'
import { formatHeaders } from './header.ts'
import { BLOCK } from './member.ts'

/** Chunks are about as large as this, whether of many small files or a large one. */
const CHUNK = 1024 * 1024

/**
 * Writes a tree as a pax archive: the same tree is the same bytes, wherever and whenever it is written. Owners are
 * numbers, times whole seconds. Sockets are left out: tar has no word for them, and whoever listens there makes them
 * anew.
 */
export async function writeTar(
  tree: FileTree,
  write: (chunk: Buffer) => Promise<void>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  const packer = new Packer(write)
  for (const entry of tree.entries) {
    options.signal?.throwIfAborted()
    const headers = formatHeaders(entry)
    if (headers === undefined) continue
    await packer.add(headers)
    if (hasContent(entry)) await addContent(packer, entry, tree.locate(entry), options.signal)
  }
  await packer.add(Buffer.alloc(2 * BLOCK))
  await packer.flush()
}

const hasContent = (entry: Entry): entry is FileEntry =>
  entry.type === 'file' && entry.linkTo === undefined && entry.size > 0

async function addContent(packer: Packer, file: FileEntry, source: string, signal?: AbortSignal): Promise<void> {
  await using handle = await open(source, 'r')
  for (let position = 0; position < file.size; position += CHUNK) {
    signal?.throwIfAborted()
    const length = Math.min(CHUNK, file.size - position)
    const isLast = position + length === file.size
    // One byte more than there should be tells whether the file has grown.
    const chunk = Buffer.alloc(length + (isLast ? Math.max(1, paddingOf(file.size)) : 0))
    const found = await readFully(handle, chunk, position)
    if (found !== length) throw changed(file, source)
    await packer.add(chunk.subarray(0, length + (isLast ? paddingOf(file.size) : 0)))
  }
}

async function readFully(handle: FileHandle, into: Buffer, position: number): Promise<number> {
  let filled = 0
  while (filled < into.length) {
    const { bytesRead } = await handle.read(into, filled, into.length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return filled
}

const changed = (file: FileEntry, source: string): MusterError =>
  new MusterError('INTERNAL', `${source} is not the ${file.size} bytes it was when the tree was read`, {
    hint: 'something changes the tree while it is used; try again',
  })

/** Puts small pieces together, so that whoever takes the chunks has few to handle. */
class Packer {
  readonly #write: (chunk: Buffer) => Promise<void>
  #pieces: Buffer[] = []
  #length = 0

  constructor(write: (chunk: Buffer) => Promise<void>) {
    this.#write = write
  }

  async add(piece: Buffer): Promise<void> {
    this.#pieces.push(piece)
    this.#length += piece.length
    if (this.#length >= CHUNK) await this.flush()
  }

  async flush(): Promise<void> {
    const chunk = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces, this.#length)
    this.#pieces = []
    this.#length = 0
    if (chunk !== undefined && chunk.length > 0) await this.#write(chunk)
  }
}
