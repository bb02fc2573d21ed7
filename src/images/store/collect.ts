import { type Dirent, type Stats } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { isErrno } from '../../state/files.ts'
import type { Digest, Manifest } from '../manifest.ts'
import type { About } from './about.ts'
import { blobsOf } from './contents.ts'
import type { Blob } from './disk.ts'
import { isAlive } from './owner.ts'
import { type ImageName, shortName } from './reference.ts'

/** What must stay whatever the lists of names say: image → who uses it ('channel stable', '12 nodes'). */
export interface Roots {
  readonly uses: ReadonlyMap<Digest, string>
}

export interface CollectOptions {
  readonly roots: Roots
  /** Milliseconds for which everything that was written or asked for stays: an image may be about to be published. */
  readonly grace?: number
  /** Only say what would be removed. */
  readonly dryRun?: boolean
}

export interface Collected {
  readonly removed: readonly Blob[]
  /** How many blobs stay. */
  readonly kept: number
  /** Temporary files of processes that have ended, removed as well. */
  readonly stale: number
  /** All that was removed. */
  readonly bytes: number
}

interface Images {
  readonly dir: string
  list(): Promise<readonly ImageName[]>
  manifest(digest: Digest): Promise<Manifest>
  about(digest: Digest): Promise<About>
}

const HOUR = 3_600_000
const BLOB = /^[0-9a-f]{64}$/

/** Mark and sweep. Nothing may be published meanwhile: the caller holds the lock. */
export async function collect(images: Images, options: CollectOptions, now: Date): Promise<Collected> {
  const { roots, grace = HOUR, dryRun = false } = options
  const needed = await mark(images, roots)
  const isOld = (stats: Stats): boolean => now.getTime() - stats.mtimeMs >= grace
  const unlink = async (file: string): Promise<void> => (dryRun ? undefined : rm(file, { force: true }))

  const removed: Blob[] = []
  let [kept, stale, bytes] = [0, 0, 0]
  for await (const { file, name, stats } of blobFiles(join(images.dir, 'blobs/sha256'))) {
    if (needed.has(name) || !isOld(stats)) {
      kept++
      continue
    }
    await unlink(file)
    removed.push({ sha256: name, size: stats.size })
    bytes += stats.size
  }
  // Directories are not ours to clear: something may be mounted in them.
  for await (const { file, name, stats } of files(join(images.dir, 'tmp'))) {
    if (!isOld(stats) || isAlive(name.split('.')[0] ?? '')) continue
    await unlink(file)
    stale++
    bytes += stats.size
  }
  return { removed, kept, stale, bytes }
}

async function mark(images: Images, roots: Roots): Promise<Set<string>> {
  const needed = new Set<string>()
  const add = async (digest: Digest): Promise<void> => {
    for (const sha256 of blobsOf(digest, await images.manifest(digest))) needed.add(sha256)
    const { report } = await images.about(digest)
    if (report !== undefined) needed.add(report.sha256)
  }
  for (const image of await images.list()) {
    // Without its manifest nobody knows what belongs to it, and it must not lose that.
    await add(image.digest).catch((error: unknown) => {
      throw new MusterError('IMAGE_DAMAGED', `${shortName(image)} cannot be read: ${messageOf(error)}`, {
        hint: `nothing was removed; pull or build it again, or take it away: muster image rm ${shortName(image)}`,
        cause: error,
      })
    })
  }
  for (const digest of roots.uses.keys()) {
    await add(digest).catch((error: unknown) => {
      // What runs may long be gone from here.
      if (!(error instanceof MusterError) || error.code !== 'IMAGE_UNKNOWN') throw error
    })
  }
  return needed
}

interface Found {
  readonly file: string
  readonly name: string
  readonly stats: Stats
}

/** Only what is where its name says: anything else is not ours. */
async function* blobFiles(top: string): AsyncGenerator<Found> {
  for (const directory of await entries(top)) {
    if (!directory.isDirectory()) continue
    for await (const found of files(join(top, directory.name)))
      if (BLOB.test(found.name) && found.name.startsWith(directory.name)) yield found
  }
}

async function* files(directory: string): AsyncGenerator<Found> {
  for (const entry of await entries(directory)) {
    if (entry.isDirectory()) continue
    const file = join(directory, entry.name)
    // A temporary file may go at any time.
    const stats = await lstat(file).catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return undefined
      throw error
    })
    if (stats !== undefined) yield { file, name: entry.name, stats }
  }
}

const entries = (directory: string): Promise<Dirent[]> => readdir(directory, { withFileTypes: true })
