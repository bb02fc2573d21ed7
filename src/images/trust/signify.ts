import type { Signature } from './signatures.ts'
import { keyId, rawPublicKey } from './keys.ts'

/**
 * Keys and signatures as signify writes them: what an initramfs checks signatures with. The same Ed25519, with a number of
 * eight bytes in front that says which key it was: that is our id of a key.
 */
const ALGORITHM = 'Ed'

/** A file with the public half of a key. */
export const signifyKey = (text: string): string =>
  `untrusted comment: key ${keyId(text)}\n${packed(keyId(text), rawPublicKey(text))}\n`

/** One word. */
export const signifySignature = ({ key, signature }: Pick<Signature, 'key' | 'signature'>): string =>
  packed(key, Buffer.from(signature, 'base64'))

const packed = (id: string, bytes: Buffer): string =>
  Buffer.concat([Buffer.from(ALGORITHM), Buffer.from(id, 'hex'), bytes]).toString('base64')
