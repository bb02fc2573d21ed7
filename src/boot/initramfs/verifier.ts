import { keyId } from '../../images/trust/keys.ts'
import { signifyKey } from '../../images/trust/signify.ts'
import { MusterError } from '../../lib/errors.ts'
import type { Item } from './archive.ts'
import { findProgram, programItems } from './programs.ts'

/** Debian's name of it, and that of others. */
const NAMES = ['signify-openbsd', 'signify']

/**
 * What an initramfs refuses images with that none of these keys has signed: the keys, and a program of this machine that
 * checks signatures. Nothing where there are no keys.
 */
export async function verifierItems(keys: readonly string[]): Promise<Item[]> {
  if (keys.length === 0) return []
  const path = (await Promise.all(NAMES.map(findProgram))).find(found => found !== undefined)
  if (path === undefined)
    throw new MusterError('BUILD_NEEDS', 'this machine lacks signify, with which nodes check signatures of images', {
      hint: 'on Debian: apt-get install signify-openbsd',
    })
  return [
    ...(await programItems('signify', path, 'verify')),
    ...keys.map(key => ({ path: `etc/muster/keys/${keyId(key)}`, content: signifyKey(key) })),
  ]
}
