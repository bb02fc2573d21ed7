import { keyId } from '../../images/trust/keys.ts'
import { signifyKey } from '../../images/trust/signify.ts'
import { MusterError } from '../../lib/errors.ts'
import type { Item } from './archive.ts'
import { findProgram, programItems } from './programs.ts'

/** Debian's name of it, and that of others. */
const NAMES = ['signify-openbsd', 'signify']

/** What a machine believes in that was told nothing yet. */
export interface Anchors {
  /** Public keys, one of which must have signed an image. */
  readonly keys: readonly string[]
  /** SHA-256 of the certificate by which it knows servers; the one it is told of unless given. */
  readonly authority?: string | undefined
}

/**
 * What an initramfs refuses images and servers with: keys with a program of this machine that checks signatures, and what the
 * certificate of the site must be.
 */
export async function anchorItems({ keys, authority }: Anchors): Promise<Item[]> {
  return [...(await keyItems(keys)), ...(authority === undefined ? [] : [authorityItem(authority)])]
}

const authorityItem = (sha256: string): Item => ({ path: 'etc/muster/ca', content: Buffer.from(`${sha256}\n`) })

async function keyItems(keys: readonly string[]): Promise<Item[]> {
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
