import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { failureOf } from '../../site/testing.ts'
import { isSignedBy, keyId, newPrivateKey, parsePrivateKey, parsePublicKey, publicText, signBytes } from './keys.ts'

const TEXT = Buffer.from('{"schema":"muster.image/1"}\n')

test('what a key signs, its public half believes, and nothing else', () => {
  const key = parsePrivateKey(newPrivateKey(), 'ci.pem')
  const publicKey = parsePublicKey(publicText(key))
  const signature = signBytes(TEXT, key)
  expect(signature).toMatch(/^[A-Za-z0-9+/]{86}==$/)
  expect(isSignedBy(TEXT, signature, publicKey)).toBe(true)
  const other = parsePublicKey(publicText(parsePrivateKey(newPrivateKey(), 'other.pem')))
  expect(isSignedBy(TEXT, signature, other)).toBe(false)
  for (let at = 0; at < TEXT.length; at++) {
    const flipped = Buffer.from(TEXT)
    flipped[at] = (flipped[at] ?? 0) ^ 1
    expect(isSignedBy(flipped, signature, publicKey)).toBe(false)
  }
})

test('a known key has a known public half, id and signature', () => {
  // RFC 8032, test 1: the seed behind the fixed beginning of PKCS #8.
  const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'
  const der = Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex').toString('base64')
  const key = parsePrivateKey(`-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`, 'rfc')
  expect(publicText(key)).toBe('ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=')
  expect(keyId(publicText(key))).toMatch(/^[0-9a-f]{16}$/)
  expect(Buffer.from(signBytes(Buffer.alloc(0), key), 'base64').toString('hex')).toBe(
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155' +
      '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
})

test('openssl says the same of a signature', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'muster-keys-'))
  try {
    const key = parsePrivateKey(newPrivateKey(), 'ci.pem')
    await writeFile(join(dir, 'public.pem'), parsePublicKey(publicText(key)).export({ format: 'pem', type: 'spki' }))
    await writeFile(join(dir, 'manifest.json'), TEXT)
    await writeFile(join(dir, 'signature'), Buffer.from(signBytes(TEXT, key), 'base64'))
    const args = 'pkeyutl -verify -pubin -inkey public.pem -rawin -in manifest.json -sigfile signature'
    const { stdout } = await exec('openssl', args.split(' '), { cwd: dir })
    expect(stdout.toString('utf8')).toContain('Signature Verified Successfully')
  } finally {
    await rm(dir, { recursive: true })
  }
})

test.each([
  ['rubbish', 'KEY_INVALID: ci.pem holds no private key that can be read'],
  ['', 'KEY_INVALID: ci.pem holds no private key that can be read'],
  [
    generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    'KEY_INVALID: ci.pem holds a key of the type x25519, not ed25519',
  ],
])('a file that holds no such key: %#', async (text, problem) => {
  expect(await failureOf(async () => parsePrivateKey(text, 'ci.pem'))).toBe(problem)
})

test.each(['', 'ed25519:', 'ed25519:AAAA', `rsa:${'A'.repeat(43)}=`, `ed25519:${'A'.repeat(44)}`])(
  '%j is no public key',
  async text => {
    expect(await failureOf(async () => parsePublicKey(text))).toBe(
      'KEY_INVALID: that is no public key such as ed25519:…',
    )
  },
)
