import { Decrypter, Encrypter, armor, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { MusterError } from './errors.ts'

/** Secrets in the age format (https://age-encryption.org), the same that `age` and `age-keygen` read and write. */
export interface AgeKey {
  readonly identity: string
  readonly recipient: string
}

export async function generateKey(): Promise<AgeKey> {
  const identity = await generateX25519Identity()
  return { identity, recipient: await identityToRecipient(identity) }
}

export async function encrypt(text: string, recipients: readonly string[]): Promise<string> {
  const encrypter = new Encrypter()
  for (const recipient of recipients) encrypter.addRecipient(recipient)
  return armor.encode(await encrypter.encrypt(text))
}

/** Fails without a word of the content. */
export async function decrypt(armored: string, identities: readonly string[]): Promise<string> {
  const problem = formProblem(armored)
  if (problem !== undefined) throw new MusterError('SECRET_UNDECRYPTABLE', problem)
  const decrypter = new Decrypter()
  for (const identity of identities) decrypter.addIdentity(identity)
  try {
    return await decrypter.decrypt(armor.decode(armored), 'text')
  } catch {
    throw new MusterError('SECRET_UNDECRYPTABLE', 'cannot be decrypted with this key')
  }
}

const HEADER = 'age-encryption.org/v1\n'

/** What is wrong with the outer form of an encrypted text, as far as one can tell without a key. */
export function formProblem(armored: string): string | undefined {
  try {
    const bytes = armor.decode(armored)
    return Buffer.from(bytes.subarray(0, HEADER.length)).toString('latin1') === HEADER
      ? undefined
      : 'is not encrypted with age'
  } catch {
    return 'is not an age-encrypted text'
  }
}

/** A key file as age-keygen writes it: comments, and one identity a line. */
export function parseKeyFile(text: string): string[] {
  const identities = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
  const wrong = identities.findIndex(line => !/^AGE-SECRET-KEY-1[0-9A-Z]{58}$/.test(line))
  if (identities.length === 0 || wrong >= 0)
    throw new MusterError('SECRET_KEY_MISSING', 'the key file holds no age identity')
  return identities
}
