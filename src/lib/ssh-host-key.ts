import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto'

/** A key of ssh as OpenSSH keeps it: the private half as a file, the public one as a line of authorized_keys or known_hosts. */
export interface SshKey {
  readonly private: string
  readonly public: string
}

const KIND = 'ssh-ed25519'
/** What stands before the 32 bytes of a key in PKCS #8 (RFC 8410, section 7). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * The key that a host has by a secret and its own name: the same after every boot, without being kept anywhere. Who has neither
 * the secret nor the key of that host learns nothing of it from those of others (HKDF, RFC 5869).
 */
export function sshHostKey(secret: string, host: string): SshKey {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', `muster ssh host key ${KIND} ${host}`, 32))
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })
  const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  const publicBlob = Buffer.concat([field(KIND), field(raw)])
  return {
    private: privateFile(seed, raw, publicBlob, host),
    public: `${KIND} ${publicBlob.toString('base64')} ${host}`,
  }
}

/** The format of OpenSSH (PROTOCOL.key), not encrypted. */
function privateFile(seed: Buffer, raw: Buffer, publicBlob: Buffer, comment: string): string {
  // Two numbers that are equal show that it was decrypted rightly; any will do.
  const inside = [Buffer.alloc(8), field(KIND), field(raw), field(Buffer.concat([seed, raw])), field(comment)]
  const missing = (8 - (Buffer.concat(inside).length % 8)) % 8
  const padding = Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))
  const whole = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    field('none'),
    field('none'),
    field(''),
    Buffer.from([0, 0, 0, 1]),
    field(publicBlob),
    field(Buffer.concat([...inside, padding])),
  ])
  const lines = whole.toString('base64').match(/.{1,70}/g) ?? []
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}

/** Its length in four bytes, and itself (RFC 4251, section 5). */
function field(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content as string)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
