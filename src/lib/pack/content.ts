import { closeSync, constants, openSync, readSync } from 'node:fs'
import { MusterError } from '../errors.ts'
import type { FileEntry, FileTree } from '../tree/entry.ts'

/**
 * Reads the content of one file piece by piece, exactly as many bytes as the tree says it has. Synchronous: most files
 * are small, and a trip through the thread pool costs more than reading them.
 */
export class Content {
  readonly #file: FileEntry
  readonly #descriptor: number
  #left: number

  constructor(tree: FileTree, file: FileEntry) {
    this.#file = file
    this.#left = file.size
    try {
      this.#descriptor = openSync(tree.locate(file), FLAGS)
    } catch (error) {
      throw GONE.has((error as NodeJS.ErrnoException).code) ? changed(file, error) : error
    }
  }

  /** Fills `length` bytes of the target; it needs room for one more, where a file that has grown is found out. */
  take(target: Buffer, at: number, length: number): void {
    const wanted = length === this.#left ? length + 1 : length
    let taken = 0
    do {
      const read = readSync(this.#descriptor, target, at + taken, wanted - taken, null)
      taken += read
      if (read === 0) break
    } while (taken < length)
    if (taken !== length) throw changed(this.#file)
    this.#left -= length
  }

  get left(): number {
    return this.#left
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
  }
}

// Whatever took the file's place must neither lead elsewhere nor keep us waiting, as a pipe would.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const GONE = new Set<string | undefined>(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'])

const changed = (file: FileEntry, cause?: unknown): MusterError =>
  new MusterError('INTERNAL', `${file.path} changed while it was packed`, { cause })
