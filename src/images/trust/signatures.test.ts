import { describe, expect, it } from 'vitest'
import type { Trust } from '../../site/schema.ts'
import { manifestText } from '../manifest.ts'
import { makeManifest } from '../store/testing.ts'
import { keyId, newPrivateKey, parsePrivateKey, publicText, signBytes } from './keys.ts'
import { type Signature, judgeSignatures, whyUntrusted } from './signatures.ts'

const MANIFEST = makeManifest('compute', [])
const KEY = parsePrivateKey(newPrivateKey(), 'ci.pem')
const PUBLIC = publicText(KEY)
const SIGNATURE: Signature = {
  key: keyId(PUBLIC),
  signature: signBytes(Buffer.from(manifestText(MANIFEST)), KEY),
  seen: '2026-03-01T12:00:00Z',
}
const trusting = (ci: object = {}): Trust => ({ keys: { ci: { public: PUBLIC, ...ci } } })
const verdict = (trust: Trust, signature = SIGNATURE, manifest = MANIFEST): string | undefined => {
  const [judged] = judgeSignatures(manifest, [signature], trust)
  return judged?.isGood === true ? `good, by ${judged.by}` : judged?.why
}

describe('a signature', () => {
  it('of a key the site trusts is good', () => {
    expect(verdict(trusting())).toBe('good, by ci')
    expect(verdict(trusting({ until: '2026-03-01' }))).toBe('good, by ci')
  })

  it('of a key nobody named is not', () => {
    expect(verdict({ keys: {} })).toBe(`the site knows no key ${keyId(PUBLIC)}`)
  })

  it('under another manifest is not', () => {
    const why = 'the signature is not one of ci over this manifest'
    expect(verdict(trusting(), SIGNATURE, { ...MANIFEST, size: MANIFEST.size + 1 })).toBe(why)
    expect(verdict(trusting(), { ...SIGNATURE, signature: `${'A'.repeat(86)}==` })).toBe(why)
  })

  it('of a revoked key is not, however old it is', () => {
    expect(verdict(trusting({ revoked: '2026-04-01' }))).toBe('the key ci was revoked on 2026-04-01')
  })

  it('that came after its key had expired is not', () => {
    expect(verdict(trusting({ until: '2026-02-28' }))).toBe(
      'the key ci had expired on 2026-02-28 when its signature came',
    )
  })
})

describe('an image', () => {
  it('of a site that names no keys needs no signature', () => {
    expect(whyUntrusted(MANIFEST, [], { keys: {} })).toBeUndefined()
  })

  it('of a site that names some needs one of theirs', () => {
    expect(whyUntrusted(MANIFEST, [], trusting())).toBe('nobody has signed it')
    expect(whyUntrusted(MANIFEST, [SIGNATURE], trusting())).toBeUndefined()
    expect(whyUntrusted(MANIFEST, [SIGNATURE], trusting({ revoked: '2026-04-01' }))).toBe(
      'the key ci was revoked on 2026-04-01',
    )
  })

  it('needs no more than one that is good', () => {
    const other = { ...SIGNATURE, key: '0'.repeat(16) }
    expect(whyUntrusted(MANIFEST, [other, SIGNATURE], trusting())).toBeUndefined()
  })
})
