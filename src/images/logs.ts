import { type WriteStream, createWriteStream } from 'node:fs'
import { readFile, rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { join } from 'node:path'
import { makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import type { Digest } from './manifest.ts'
import { ownedName } from './store/owner.ts'

/**
 * What the programs of a build printed: DATA/images/logs/NAME/{last.log,HEX.log}. A log belongs to a build, not to the
 * image: two builds of one image have two logs and one digest.
 */
const logDir = (store: string, name: string): string => join(store, 'logs', name)

export interface BuildLog {
  write(chunk: Buffer | string): void
  /** With the digest of what was built, unless it failed; a build that did nothing leaves no log. */
  close(outcome?: Digest | 'nothing done'): Promise<void>
}

export async function openBuildLog(store: string, name: string): Promise<BuildLog> {
  const dir = logDir(store, name)
  await makeDirectory(dir, 0o700)
  // Of its own until the end: two builds of one image may run at once.
  const file = join(dir, `${ownedName()}.log`)
  const stream: WriteStream = createWriteStream(file, { mode: 0o600 })
  return {
    write: chunk => void stream.write(chunk),
    async close(outcome) {
      stream.end()
      await finished(stream)
      if (outcome === 'nothing done') await rm(file)
      else await rename(file, outcome === undefined ? lastOf(dir) : fileOf(dir, outcome))
      if (outcome !== undefined) await rm(lastOf(dir), { force: true })
    },
  }
}

const lastOf = (dir: string): string => join(dir, 'last.log')
const fileOf = (dir: string, digest: Digest): string => join(dir, `${digest.slice('sha256:'.length)}.log`)

/** The log of the last build of a name, if it failed; or of the build that made an image. */
export async function readBuildLog(store: string, name: string, digest?: Digest): Promise<string> {
  const dir = logDir(store, name)
  const text = await readFile(digest === undefined ? lastOf(dir) : fileOf(dir, digest), 'utf8').catch(() => undefined)
  if (text !== undefined) return text
  throw new MusterError('IMAGE_UNKNOWN', `there is no build log of ${name}`, {
    hint: 'images that were imported or pulled have none',
  })
}
