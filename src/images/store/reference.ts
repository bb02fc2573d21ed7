import { MusterError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/suggest.ts'
import type { Digest } from '../manifest.ts'

/** What tells one image from all others. */
export interface ImageName {
  readonly name: string
  readonly digest: Digest
}

const SHORTEST = 6
const FORM = /^(?:([^@]+)@)?(?:sha256:)?([0-9a-f]{1,64})$/
/** Enough for people to tell images apart. */
const SHOWN = 12

/** compute@sha256:3f2a91bc0d4e */
export const shortName = ({ name, digest }: ImageName): string => `${name}@${digest.slice(0, 'sha256:'.length + SHOWN)}`

/**
 * The image that is meant by NAME (the newest of that name), NAME@sha256:DIGITS, sha256:DIGITS or DIGITS alone, where
 * DIGITS are the first six or more of its digest. A name that looks like digits is a name first.
 *
 * The images of one name come newest first.
 */
export function findImage<Image extends ImageName>(images: readonly Image[], reference: string): Image {
  const newest = images.find(image => image.name === reference)
  if (newest !== undefined) return newest
  const [, name, digits] = FORM.exec(reference) ?? []
  if (digits === undefined) throw unknown(images, reference, reference)
  if (digits.length < SHORTEST) {
    throw new MusterError('IMAGE_UNKNOWN', `no image is named ${reference}, and as a digest it is too short`, {
      hint: `write at least ${SHORTEST} digits of the digest`,
    })
  }
  const found = images.filter(
    image => image.digest.startsWith(`sha256:${digits}`) && (name === undefined || image.name === name),
  )
  const [only, ...others] = found
  if (only === undefined) throw unknown(images, reference, name)
  if (others.length === 0) return only
  throw new MusterError('IMAGE_AMBIGUOUS', `${reference} may be any of ${found.length} images`, {
    details: found.map(shortName),
  })
}

function unknown(images: readonly ImageName[], reference: string, name: string | undefined): MusterError {
  const names = new Set(images.map(image => image.name))
  if (name === undefined) return new MusterError('IMAGE_UNKNOWN', `no image has the digest ${reference}`)
  if (names.has(name)) return new MusterError('IMAGE_UNKNOWN', `${name} has no image with the digest ${reference}`)
  return new MusterError('IMAGE_UNKNOWN', `no image is named ${name}${didYouMean(name, names)}`)
}
