import { rm } from 'node:fs/promises'
import { MusterError } from '../../lib/errors.ts'
import { isErrno } from '../../state/files.ts'
import type { ArtefactType, Digest, Manifest } from '../manifest.ts'
import { hexOf } from './contents.ts'
import { type Blob, hashFile } from './disk.ts'
import type { ImageName } from './reference.ts'

/** What one part of an image was found to be. */
export interface Finding extends ImageName {
  readonly type: ArtefactType | 'manifest'
  readonly sha256: string
  /** Nothing when all is well. */
  readonly problem?: 'missing' | 'wrong size' | 'wrong digest' | 'unreadable' | 'not a manifest'
}

type Problem = NonNullable<Finding['problem']>

export interface VerifyOptions {
  /** Takes damaged blobs away, so that the next build, pull or push brings them again. */
  readonly discard?: boolean
}

interface Blobs {
  pathOf(sha256: string): string
  manifest(digest: Digest): Promise<Manifest>
}

export async function* verifyImages(
  store: Blobs,
  images: readonly ImageName[],
  options: VerifyOptions,
): AsyncGenerator<Finding> {
  const results = new Map<string, Problem | undefined>()
  // Images share blobs; each is read once.
  const check = async (blob: Partial<Blob> & { sha256: string }): Promise<{ problem?: Problem }> => {
    if (!results.has(blob.sha256)) results.set(blob.sha256, await problemOf(store, blob, options))
    const problem = results.get(blob.sha256)
    return problem === undefined ? {} : { problem }
  }
  for (const { name, digest } of images) {
    const sha256 = hexOf(digest)
    const finding: Finding = { name, digest, type: 'manifest', sha256, ...(await check({ sha256 })) }
    const manifest = finding.problem === undefined ? await parsed(store, digest) : undefined
    if (finding.problem === undefined && manifest === undefined) yield { ...finding, problem: 'not a manifest' }
    else yield finding
    for (const { type, ...blob } of manifest?.artefacts ?? [])
      yield { name, digest, type, sha256: blob.sha256, ...(await check(blob)) }
  }
}

async function problemOf(
  store: Blobs,
  expected: Partial<Blob> & { sha256: string },
  { discard = false }: VerifyOptions,
): Promise<Problem | undefined> {
  const file = store.pathOf(expected.sha256)
  const found = await hashFile(file).catch((error: unknown) =>
    isErrno(error, 'ENOENT') ? ('missing' as const) : ('unreadable' as const),
  )
  if (typeof found === 'string') return found
  if (found.sha256 === expected.sha256 && (expected.size ?? found.size) === found.size) return undefined
  if (discard && found.sha256 !== expected.sha256) await rm(file, { force: true })
  return expected.size !== undefined && found.size !== expected.size ? 'wrong size' : 'wrong digest'
}

async function parsed(store: Blobs, digest: Digest): Promise<Manifest | undefined> {
  try {
    return await store.manifest(digest)
  } catch (error) {
    if (error instanceof MusterError && error.code === 'IMAGE_DAMAGED') return undefined
    throw error
  }
}
