import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isErrno } from '../../state/files.ts'

/**
 * Writes files so that a reader sees the old or the new one whole. They are made in a directory of their own beside: dnsmasq
 * reads whatever appears in the one it watches.
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
  /** Something is different or gone: dnsmasq has to read everything anew. */
  | { readonly kind: 'changed' }

export function compareLists(before: ReadonlySet<string>, after: readonly string[]): ListChange {
  const kept = new Set(after)
  const lines = after.filter(line => !before.has(line))
  if (kept.size - lines.length < before.size) return { kind: 'changed' }
  return lines.length === 0 ? { kind: 'none' } : { kind: 'added', lines }
}

/**
 * The reservations: one file with all of them, and one for each time some were added since. dnsmasq notices a new file in a
 * directory it watches, but holds on to what it read before: a line that changed or went needs a SIGHUP, after which it
 * reads all files.
 */
export class ReservationFiles {
  readonly #file: string
  readonly #added: string
  readonly #staging: Staging
  #lines: ReadonlySet<string> = new Set()
  #next = 1

  constructor(file: string, added: string, staging: Staging) {
    this.#file = file
    this.#added = added
    this.#staging = staging
  }

  /** What a dnsmasq that starts now would read. */
  async open(): Promise<void> {
    await mkdir(this.#added, { recursive: true })
    const added = (await readdir(this.#added)).map(name => join(this.#added, name))
    const texts = await Promise.all([this.#file, ...added].map(path => readFile(path, 'utf8').catch(missing)))
    this.#lines = new Set(texts.flatMap(text => (text ?? '').split('\n').filter(line => line !== '')))
    // Whoever was killed between the two steps of a change left both.
    if (added.length > 0 || texts[0] === undefined) await this.writeAll([...this.#lines])
  }

  compare(lines: readonly string[]): ListChange {
    const change = compareLists(this.#lines, lines)
    const isMuch = change.kind === 'added' && (change.lines.length > MOST_LINES || this.#next > MOST_FILES)
    return isMuch ? { kind: 'changed' } : change
  }

  /** The next file of additions. */
  get addition(): string {
    return join(this.#added, String(this.#next))
  }

  async add(lines: readonly string[]): Promise<void> {
    await this.#staging.place(this.addition, textOf(lines))
    this.#next += 1
    this.#lines = new Set([...this.#lines, ...lines])
  }

  get file(): string {
    return this.#file
  }

  async writeAll(lines: readonly string[]): Promise<void> {
    await this.#staging.place(this.#file, textOf(lines))
    for (const name of await readdir(this.#added)) await rm(join(this.#added, name), { force: true })
    this.#next = 1
    this.#lines = new Set(lines)
  }
}

export const textOf = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
