import { z } from 'zod'
import type { Trust } from '../../site/schema.ts'
import { type Manifest, manifestText } from '../manifest.ts'
import { isSignedBy, keyId, parsePublicKey } from './keys.ts'

/** Of the text of a manifest: `openssl pkeyutl -verify -rawin` says the same. */
export const Signature = z.strictObject({
  key: z
    .string()
    .regex(/^[0-9a-f]{16}$/, 'is not the id of a key')
    .describe('Id of the key.'),
  signature: z
    .string()
    .regex(/^[A-Za-z0-9+/]{86}==$/, 'is not a signature')
    .describe('Ed25519, of the text of the manifest, in base64.'),
  seen: z.iso.datetime().describe('When it was first met here.'),
})
export type Signature = z.infer<typeof Signature>

/** What there is to say about one signature, given the keys a site trusts. */
export type Judged = { readonly signature: Signature } & (
  | { readonly isGood: true; readonly by: string }
  | { readonly isGood: false; readonly by?: string; readonly why: string }
)

/**
 * A revoked key vouches for nothing. One that has expired still vouches for what was signed before, as far as we can tell:
 * for signatures that we met before that day. Otherwise every node would stop booting on it.
 */
export function judgeSignatures(manifest: Manifest, signatures: readonly Signature[], { keys }: Trust): Judged[] {
  const text = Buffer.from(manifestText(manifest))
  const known = new Map(Object.entries(keys).map(([name, key]) => [keyId(key.public), { name, ...key }]))
  return signatures.map((signature): Judged => {
    const key = known.get(signature.key)
    if (key === undefined) return { signature, isGood: false, why: `the site knows no key ${signature.key}` }
    const bad = (why: string): Judged => ({ signature, isGood: false, by: key.name, why })
    if (!isSignedBy(text, signature.signature, parsePublicKey(key.public)))
      return bad(`the signature is not one of ${key.name} over this manifest`)
    if (key.revoked !== undefined) return bad(`the key ${key.name} was revoked on ${key.revoked}`)
    if (key.until !== undefined && signature.seen.slice(0, 10) > key.until)
      return bad(`the key ${key.name} had expired on ${key.until} when its signature came`)
    return { signature, isGood: true, by: key.name }
  })
}

/** What nodes carry. A key that has expired stays: what it signed before is still good, and only servers know what that is. */
export const anchorsOf = ({ keys, ca }: Trust): { keys: string[]; authority: string | undefined } => ({
  keys: Object.values(keys).flatMap(key => (key.revoked === undefined ? [key.public] : [])),
  authority: ca,
})

/** A site that names keys boots nothing that none of them has signed; undefined if there is nothing to say against it. */
export function whyUntrusted(manifest: Manifest, signatures: readonly Signature[], trust: Trust): string | undefined {
  if (Object.keys(trust.keys).length === 0) return undefined
  if (signatures.length === 0) return 'nobody has signed it'
  const judged = judgeSignatures(manifest, signatures, trust)
  return judged.some(({ isGood }) => isGood)
    ? undefined
    : judged.flatMap(one => (one.isGood ? [] : [one.why])).join('; ')
}
