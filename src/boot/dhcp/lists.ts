import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isErrno } from '../../state/files.ts'

/**
 * Writes files so that a reader sees the old or the new one whole. They are made in a directory of their own beside:
 * dnsmasq reads whatever appears in the one it watches.
 */
export class Staging {
  readonly #dir: string

  constructor(dir: string) {
    this.#dir = join(dir, '.new')
  }

  async prepare(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true })
    await mkdir(this.#dir, { recursive: true })
  }

  /** Where the new one waits until it may take its place. */
  async draft(path: string, content: string | Uint8Array): Promise<string> {
    const draft = join(this.#dir, basename(path))
    await writeFile(draft, content, { mode: 0o644 })
    return draft
  }

  async place(path: string, content: string | Uint8Array): Promise<void> {
    await rename(await this.draft(path, content), path)
  }

  /** True where it was not so before. */
  async placeIfNew(path: string, content: string | Uint8Array): Promise<boolean> {
    const before = await readFile(path).catch(missing)
    if (before?.equals(Buffer.from(content)) === true) return false
    await this.place(path, content)
    return true
  }
}

export const missing = (error: unknown): undefined => {
  if (!isErrno(error, 'ENOENT')) throw error
}

/** How many files of additions there may be until all is written together. */
const MOST_FILES = 100
/** dnsmasq says that it reads such a file before it does: with more lines than this the difference would be felt. */
const MOST_LINES = 1000

export type ListChange =
  | { readonly kind: 'none' }
  /** Only new lines: dnsmasq reads one more file, which costs it next to nothing. */
  | { readonly kind: 'added'; readonly lines: readonly string[] }
  /** Something is different or gone: everything has to be read anew. */
  | { readonly kind: 'changed' }

export function compareLists(before: ReadonlySet<string>, after: readonly string[]): ListChange {
  const kept = new Set(after)
  const lines = after.filter(line => !before.has(line))
  if (kept.size - lines.length < before.size) return { kind: 'changed' }
  return lines.length === 0 ? { kind: 'none' } : { kind: 'added', lines }
}

/**
 * The reservations: one file with all of them, and one for each time some were added since. dnsmasq notices a new file
 * in a directory it watches, but holds on to what it read before: where a line changed or went another dnsmasq has to
 * start.
 */
export class ReservationFiles {
  readonly #files: { readonly reservations: string; readonly strangers: string; readonly added: string }
  readonly #staging: Staging
  #lines: ReadonlySet<string> = new Set()
  /** MACs and addresses of the strangers. */
  #strangers: ReadonlySet<string> = new Set()
  #next = 1

  constructor(
    files: { readonly reservations: string; readonly strangers: string; readonly added: string },
    staging: Staging,
  ) {
    this.#files = files
    this.#staging = staging
  }

  /** What a dnsmasq that starts now would read. */
  async open(): Promise<void> {
    const { reservations, strangers, added } = this.#files
    await mkdir(added, { recursive: true })
    const additions = (await readdir(added)).map(name => join(added, name))
    const lines = (await Promise.all([reservations, ...additions].map(linesOf))).flat()
    // Whoever was killed in the middle of a change left some lines twice.
    await this.writeAll([...new Set(lines)], await linesOf(strangers))
  }

  compare(lines: readonly string[]): ListChange {
    const change = compareLists(this.#lines, lines)
    if (change.kind !== 'added') return change
    const isMuch = change.lines.length > MOST_LINES || this.#next > MOST_FILES
    // A stranger has become a node: it would be there twice.
    const isKnown = change.lines.some(line => line.split(',').some(word => this.#strangers.has(word)))
    return isMuch || isKnown ? { kind: 'changed' } : change
  }

  /** The next file of additions. */
  get addition(): string {
    return join(this.#files.added, String(this.#next))
  }

  async add(lines: readonly string[]): Promise<void> {
    await this.#staging.place(this.addition, textOf(lines))
    this.#next += 1
    this.#lines = new Set([...this.#lines, ...lines])
  }

  async writeAll(lines: readonly string[], strangers: readonly string[]): Promise<void> {
    const { added } = this.#files
    await this.#staging.place(this.#files.reservations, textOf(lines))
    await this.#staging.place(this.#files.strangers, textOf(strangers))
    for (const name of await readdir(added)) await rm(join(added, name), { force: true })
    this.#next = 1
    this.#lines = new Set(lines)
    this.#strangers = new Set(strangers.flatMap(line => line.split(',').slice(0, 2)))
  }
}

const linesOf = async (path: string): Promise<string[]> =>
  ((await readFile(path, 'utf8').catch(missing)) ?? '').split('\n').filter(line => line !== '')

export const textOf = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
