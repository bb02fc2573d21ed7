import { mergeAbout } from '../../images/store/about.ts'
import type { ImageName } from '../../images/store/reference.ts'
import type { ImageStore } from '../../images/store/store.ts'
import { manifestText } from '../../images/manifest.ts'
import { isSignedBy, keyId, parsePrivateKey, parsePublicKey, publicText, signBytes } from '../../images/trust/keys.ts'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import type { Call } from '../define.ts'
import { type DataOption, imageStore, shortDigest } from '../images.ts'
import type { Io } from '../io.ts'
import { readPrivateFile } from '../keys.ts'

export interface SignOptions extends DataOption {
  readonly signingKey?: string
  readonly signingCommand?: string
  readonly public?: string
}

export async function sign({ io, out, args: [reference = ''], options }: Call<SignOptions>): Promise<void> {
  const made = await signImage(io, await imageStore(io, options), reference, options)
  await out.result(made, () => [`${made.name} ${shortDigest(made.digest)} signed by ${made.key}`])
}

/** Whether somebody was named who signs. */
export const canSign = ({ env }: Io, options: SignOptions): boolean =>
  [options.signingKey, options.signingCommand, env['MUSTER_SIGNING_KEY'], env['MUSTER_SIGNING_COMMAND']].some(
    one => one !== undefined,
  )

export async function signImage(
  io: Io,
  store: ImageStore,
  reference: string,
  options: SignOptions,
): Promise<ImageName & Made> {
  const { name, digest, manifest } = await store.resolve(reference)
  const made = await signatureOf(io, Buffer.from(manifestText(manifest)), options)
  const seen = new Date().toISOString()
  await store.describe(digest, known => mergeAbout(known, { signatures: [{ ...made, seen }] }))
  return { name, digest, ...made }
}

interface Made {
  readonly key: string
  readonly signature: string
}

async function signatureOf(io: Io, text: Buffer, options: SignOptions): Promise<Made> {
  const command = options.signingCommand ?? io.env['MUSTER_SIGNING_COMMAND']
  const file = options.signingKey ?? io.env['MUSTER_SIGNING_KEY']
  if (command !== undefined) return byCommand(command, text, options.public ?? io.env['MUSTER_SIGNING_PUBLIC'])
  if (file === undefined)
    throw new MusterError('USAGE', 'say who signs: --signing-key FILE, or --signing-command COMMAND --public KEY')
  const key = parsePrivateKey(await readPrivateFile(io, file), file)
  return { key: keyId(publicText(key)), signature: signBytes(text, key) }
}

/** A program that holds the key, or asks who does: the bytes to sign come on its standard input. */
async function byCommand(command: string, text: Buffer, publicKey: string | undefined): Promise<Made> {
  if (publicKey === undefined)
    throw new MusterError('USAGE', '--signing-command needs --public, to see whether what it prints is right')
  const { stdout } = await exec('sh', ['-c', command], { input: text, timeout: SIGNING })
  // The 64 bytes themselves, or their base64.
  const signature = stdout.length === 64 ? stdout.toString('base64') : stdout.toString('latin1').trim()
  if (!/^[A-Za-z0-9+/]{86}==$/.test(signature) || !isSignedBy(text, signature, parsePublicKey(publicKey)))
    throw new MusterError('KEY_INVALID', `what the signing command printed is no signature of ${keyId(publicKey)}`, {
      hint: 'it must print 64 bytes, or their base64: Ed25519 over its standard input',
    })
  return { key: keyId(publicKey), signature }
}

/** Somebody may have to touch a token. */
const SIGNING = 300_000
