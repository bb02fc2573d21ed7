import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { isErrno } from '../../state/files.ts'
import { Artefact, type Digest } from '../manifest.ts'
import { Signature } from '../trust/signatures.ts'
import { hexOf } from './contents.ts'
import { moveInto, seal } from './disk.ts'

/** What became known of an image after it was built: it may grow, while the image never changes. */
export const About = z.strictObject({
  signatures: z.array(Signature).max(16).default([]),
  /** The newest report of its tests: a blob. */
  report: Artefact.omit({ type: true }).optional(),
})
export type About = z.infer<typeof About>

/** Signatures of both, each key once: one that was met before stays as it is. Of the reports the one that came last. */
export function mergeAbout(known: About, more: About): About {
  const isKnown = (one: Signature): boolean => known.signatures.some(({ signature }) => signature === one.signature)
  const fresh = more.signatures.filter(one => !isKnown(one))
  const replaced = new Set(fresh.map(({ key }) => key))
  const report = more.report ?? known.report
  return {
    signatures: [...known.signatures.filter(({ key }) => !replaced.has(key)), ...fresh],
    ...(report !== undefined && { report }),
  }
}

const LARGEST = 2 ** 20

/** `about/DIGEST.json` for each image that something is known of. */
export class AboutFiles {
  readonly #dir: string

  constructor(dir: string) {
    this.#dir = dir
  }

  async read(digest: Digest): Promise<About> {
    const file = this.#fileOf(digest)
    try {
      const text = await readFile(file, 'utf8')
      if (text.length > LARGEST) throw new Error(`${text.length} characters are too many`)
      return About.parse(JSON.parse(text))
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return { signatures: [] }
      throw new MusterError('IMAGE_DAMAGED', `${file}: ${messageOf(error)}`, {
        cause: error,
        hint: 'remove this file, then sign and test the image again',
      })
    }
  }

  /** The temporary file must be on the same disk. */
  async write(digest: Digest, about: About, temporary: string): Promise<void> {
    await writeFile(temporary, `${JSON.stringify(About.parse(about), null, 2)}\n`, { flag: 'wx', mode: 0o600 })
    await seal(temporary, 0o600)
    await moveInto(temporary, this.#fileOf(digest))
  }

  #fileOf(digest: Digest): string {
    return join(this.#dir, `${hexOf(digest)}.json`)
  }
}
