import { MusterError } from '../../lib/errors.ts'

/** Of which image: a mirror that does not answer, or answers with something else, is asked for many. */
export const ofImage = (image: string, error: unknown): unknown =>
  error instanceof MusterError && error.code === 'MIRROR_UNREACHABLE'
    ? new MusterError(error.code, `${image}: ${error.message}`, {
        details: error.details,
        hint: error.hint,
        cause: error,
      })
    : error

/** What a repository gives is not what its key has signed. */
export const wronglySigned = (
  { name, key }: { readonly name: string; readonly key?: string },
  details: readonly string[],
  cause: unknown,
): MusterError =>
  new MusterError(
    'MIRROR_UNREACHABLE',
    `repository ${name} is not signed by ${key === undefined ? 'any key of the recipe' : `the key ${key}`}`,
    {
      details,
      hint: 'put the key that signs it in that place, or take it as it is with trusted: true in the recipe',
      cause,
    },
  )
