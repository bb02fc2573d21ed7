import {
  type KeyObject,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
} from 'node:crypto'
import { MusterError } from '../../lib/errors.ts'

/**
 * Keys that sign images: Ed25519. The private half is a PEM file as openssl writes it; the public half is one word that fits
 * into site.yaml, and its id is what signatures name it by.
 */
const FORM = /^ed25519:([A-Za-z0-9+/]{43}=)$/

/** ed25519:… of a private or public key. */
export function publicText(key: KeyObject): string {
  const { x = '' } = createPublicKey(key.type === 'private' ? key : key.export({ format: 'pem', type: 'spki' })).export(
    {
      format: 'jwk',
    },
  )
  return `ed25519:${Buffer.from(x, 'base64url').toString('base64')}`
}

export const keyId = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

export function rawPublicKey(text: string): Buffer {
  const raw = FORM.exec(text)?.[1]
  if (raw === undefined) throw new MusterError('KEY_INVALID', 'that is no public key such as ed25519:…')
  return Buffer.from(raw, 'base64')
}

export function parsePublicKey(text: string): KeyObject {
  const x = rawPublicKey(text).toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

/** A new private key, as PEM. */
export const newPrivateKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()

export function parsePrivateKey(pem: string, name: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (error) {
    throw new MusterError('KEY_INVALID', `${name} holds no private key that can be read`, { cause: error })
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw new MusterError('KEY_INVALID', `${name} holds a key of the type ${key.asymmetricKeyType}, not ed25519`)
  return key
}

export const signBytes = (bytes: Uint8Array, key: KeyObject): string => sign(null, bytes, key).toString('base64')

export const isSignedBy = (bytes: Uint8Array, signature: string, key: KeyObject): boolean =>
  verify(null, bytes, key, Buffer.from(signature, 'base64'))
