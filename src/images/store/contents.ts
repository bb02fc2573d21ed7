import { MusterError, messageOf } from '../../lib/errors.ts'
import { type Digest, Manifest } from '../manifest.ts'

export function parseManifest(digest: Digest, text: Buffer): Manifest {
  try {
    return Manifest.parse(JSON.parse(text.toString('utf8')))
  } catch (error) {
    throw new MusterError('IMAGE_DAMAGED', `${digest} is not a manifest: ${messageOf(error)}`, { cause: error })
  }
}

export const hexOf = (digest: Digest): string => digest.slice('sha256:'.length)

/** Everything an image consists of, each once: its manifest and its artefacts. */
export const blobsOf = (digest: Digest, manifest: Manifest): Set<string> =>
  new Set([hexOf(digest), ...manifest.artefacts.map(artefact => artefact.sha256)])
