import { describe, expect, it } from 'vitest'
import { MusterError } from '../../lib/errors.ts'
import { findImage, type ImageName } from './reference.ts'

const image = (name: string, digits: string): ImageName => ({ name, digest: `sha256:${digits.padEnd(64, '0')}` })

/** Newest first, name by name. */
const IMAGES = [
  image('compute', 'aaaaaa2'),
  image('compute', 'aaaaaa1'),
  image('compute', 'bbbbbb1'),
  image('decade', 'cccccc1'),
  image('login', 'aaaaaa3'),
  image('login', 'decade1'),
]

const find = (reference: string): string => {
  const { name, digest } = findImage(IMAGES, reference)
  return `${name} ${digest.slice(7, 14)}`
}

function problem(reference: string): MusterError {
  try {
    findImage(IMAGES, reference)
  } catch (error) {
    if (error instanceof MusterError) return error
    throw error
  }
  throw new Error(`${reference} was found`)
}

describe('a reference', () => {
  it.for([
    ['compute', 'compute aaaaaa2'],
    ['login', 'login aaaaaa3'],
    ['compute@sha256:aaaaaa1', 'compute aaaaaa1'],
    ['compute@aaaaaa1', 'compute aaaaaa1'],
    ['compute@sha256:bbbbbb', 'compute bbbbbb1'],
    ['login@sha256:aaaaaa', 'login aaaaaa3'],
    [`login@sha256:aaaaaa3${'0'.repeat(57)}`, 'login aaaaaa3'],
    ['sha256:bbbbbb', 'compute bbbbbb1'],
    [`sha256:aaaaaa1${'0'.repeat(57)}`, 'compute aaaaaa1'],
    ['bbbbbb', 'compute bbbbbb1'],
    ['aaaaaa3', 'login aaaaaa3'],
    // A name before it is digits.
    ['decade', 'decade cccccc1'],
    ['sha256:decade', 'login decade1'],
  ] as const)('%s is the image %s', ([reference, found]) => {
    expect(find(reference)).toBe(found)
  })

  it.for([
    ['sha256:aaaaaa', ['compute@sha256:aaaaaa200000', 'compute@sha256:aaaaaa100000', 'login@sha256:aaaaaa300000']],
    ['aaaaaa', ['compute@sha256:aaaaaa200000', 'compute@sha256:aaaaaa100000', 'login@sha256:aaaaaa300000']],
    ['compute@sha256:aaaaaa', ['compute@sha256:aaaaaa200000', 'compute@sha256:aaaaaa100000']],
  ] as const)('%s may be several, which are named', ([reference, candidates]) => {
    expect(problem(reference)).toMatchObject({
      code: 'IMAGE_AMBIGUOUS',
      message: `${reference} may be any of ${candidates.length} images`,
      details: candidates,
    })
  })

  it.for([
    ['comptue', 'no image is named comptue — did you mean compute?'],
    ['comptue@sha256:aaaaaa', 'no image is named comptue — did you mean compute?'],
    ['storage', 'no image is named storage'],
    ['', 'no image is named '],
    ['COMPUTE', 'no image is named COMPUTE — did you mean compute?'],
    ['sha256:ffffff', 'no image has the digest sha256:ffffff'],
    ['ffffff', 'no image has the digest ffffff'],
    ['login@sha256:bbbbbb', 'login has no image with the digest login@sha256:bbbbbb'],
    ['compute@latest', 'no image is named compute@latest'],
    ['sha256:AAAAAA', 'no image is named sha256:AAAAAA'],
    ['../login', 'no image is named ../login'],
  ] as const)('%j is unknown: %s', ([reference, message]) => {
    expect(problem(reference)).toMatchObject({ code: 'IMAGE_UNKNOWN', message })
  })

  it.for(['bbbbb', 'sha256:bbbbb', 'compute@sha256:bbbbb', 'compute@b'])('%s is too short for a digest', reference => {
    expect(problem(reference)).toMatchObject({
      code: 'IMAGE_UNKNOWN',
      hint: 'write at least 6 digits of the digest',
    })
  })

  it('finds nothing where nothing is', () => {
    expect(() => findImage([], 'compute')).toThrow('no image is named compute')
  })
})
