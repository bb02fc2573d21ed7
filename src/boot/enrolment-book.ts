import { type FileHandle, open, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { BootId } from '../nodes/reports.ts'

/** What is kept of a node; times in seconds. */
const Entry = z.strictObject({
  /** The last claim that was granted: for which boot, and to whom. */
  granted: z.strictObject({ boot: BootId, claim: z.string().regex(/^[0-9a-f]{64}$/), at: z.int() }).optional(),
  /** Boots that began until then get nothing. */
  revoked: z.int().optional(),
})
export type Entry = z.infer<typeof Entry>
const Line = z.strictObject({ node: z.string().min(1).max(63), ...Entry.shape })

/** After so many lines the file is written anew, with one for each node. */
const COMPACT_AFTER = 50_000

interface Waiting {
  readonly node: string
  readonly before: Entry | undefined
  readonly after: Entry
}

/**
 * Who was let in, and who was turned out: in memory to be asked, in a file to be remembered. What was promised to a node is
 * on disk before it hears of it; many at once cost one write.
 */
export class EnrolmentBook implements AsyncDisposable {
  readonly #file: string
  readonly #entries: Map<string, Entry>
  #handle: FileHandle
  #length: number
  #lines = 0
  #queue: Waiting[] = []
  #current: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  private constructor(file: string, entries: Map<string, Entry>, opened: Opened) {
    this.#file = file
    this.#entries = entries
    this.#handle = opened.handle
    this.#length = opened.length
  }

  static async open(file: string): Promise<EnrolmentBook> {
    await makeDirectory(dirname(file), 0o700)
    const entries = await load(file)
    return new EnrolmentBook(file, entries, await writeWhole(file, entries))
  }

  get(node: string): Entry | undefined {
    return this.#entries.get(node)
  }

  /** True at once for whoever asks; resolves when it is so for good. If it cannot be written, it is as it was before. */
  put(node: string, change: Entry): Promise<void> {
    const before = this.#entries.get(node)
    const after = { ...before, ...change }
    this.#entries.set(node, after)
    this.#queue.push({ node, before, after })
    this.#next ??= this.#current
      .catch(() => {})
      .then(() => {
        this.#current = this.#write().finally(() => void (this.#current = Promise.resolve()))
        this.#next = undefined
        return this.#current
      })
    return this.#next
  }

  /** Resolves when all that is true now is so for good. */
  settled(): Promise<void> {
    return this.#next ?? this.#current
  }

  async #write(): Promise<void> {
    const queue = this.#queue
    this.#queue = []
    try {
      if (this.#lines + queue.length > COMPACT_AFTER) await this.#compact()
      else await this.#append(queue.map(({ node, after }) => lineOf(node, after)).join(''))
      this.#lines += queue.length
    } catch (error) {
      for (const { node, before, after } of queue.toReversed()) {
        if (this.#entries.get(node) !== after) continue
        if (before === undefined) this.#entries.delete(node)
        else this.#entries.set(node, before)
      }
      throw error
    }
  }

  async #append(text: string): Promise<void> {
    try {
      await this.#handle.appendFile(text)
      await this.#handle.datasync()
      this.#length += Buffer.byteLength(text)
    } catch (error) {
      // Half a line must not be followed by others.
      await this.#handle.truncate(this.#length).catch(() => {})
      throw error
    }
  }

  async #compact(): Promise<void> {
    const opened = await writeWhole(this.#file, this.#entries)
    await this.#handle.close()
    this.#handle = opened.handle
    this.#length = opened.length
    this.#lines = 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.settled().catch(() => {})
    await this.#handle.close()
  }
}

const lineOf = (node: string, entry: Entry): string => `${JSON.stringify({ node, ...entry })}\n`

async function load(file: string): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>()
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  })
  const lines = text.split('\n')
  // What has no end was being written when we were stopped: nobody was told of it.
  lines.pop()
  for (const [index, line] of lines.entries()) {
    const { node, ...entry } = parse(line, `${file}:${index + 1}`)
    entries.set(node, entry)
  }
  return entries
}

function parse(line: string, where: string): z.infer<typeof Line> {
  try {
    return Line.parse(JSON.parse(line))
  } catch (error) {
    throw new MusterError('STATE_DAMAGED', `${where}: is not what was written there`, {
      cause: error,
      hint: 'move the file away: nodes that run are then let in again with their next boot',
    })
  }
}

interface Opened {
  readonly handle: FileHandle
  readonly length: number
}

/** One line for each node. There as a whole, or not at all. */
async function writeWhole(file: string, entries: ReadonlyMap<string, Entry>): Promise<Opened> {
  const text = [...entries].map(([node, entry]) => lineOf(node, entry)).join('')
  await writeFile(`${file}.new`, text, { mode: 0o600, flush: true })
  await rename(`${file}.new`, file)
  await using directory = await open(dirname(file), 'r')
  await directory.sync()
  return { handle: await open(file, 'a'), length: Buffer.byteLength(text) }
}
