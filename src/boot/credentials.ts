import { type KeyObject, createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'

/** What a node shows to get its files: who it is, by which boot, and until when. Signed by the server, and never logged. */
const Said = z.strictObject({ n: z.string(), m: z.string(), b: z.string(), x: z.int() })

export interface Credential {
  readonly node: string
  readonly mac: string
  readonly boot: string
  /** Seconds since 1970. */
  readonly expires: number
}

const SHAPE = /^(m1\.[A-Za-z0-9_-]{1,400})\.([A-Za-z0-9_-]{43})$/

export function signCredential(key: KeyObject, { node, mac, boot, expires }: Credential): string {
  const said: z.infer<typeof Said> = { n: node, m: mac, b: boot, x: expires }
  const text = `m1.${Buffer.from(JSON.stringify(said)).toString('base64url')}`
  return `${text}.${signatureOf(key, text).toString('base64url')}`
}

/** Undefined where it is not one of ours; whether it is still good is another question. */
export function readCredential(key: KeyObject, credential: string): Credential | undefined {
  const [, text, signature] = SHAPE.exec(credential) ?? []
  if (text === undefined || signature === undefined) return undefined
  const given = Buffer.from(signature, 'base64url')
  // The last letter has bits that mean nothing: only one spelling counts.
  if (given.toString('base64url') !== signature || !timingSafeEqual(given, signatureOf(key, text))) return undefined
  const { n, m, b, x } = Said.parse(JSON.parse(Buffer.from(text.slice(3), 'base64url').toString('utf8')))
  return { node: n, mac: m, boot: b, expires: x }
}

const signatureOf = (key: KeyObject, text: string): Buffer => createHmac('sha256', key).update(text).digest()
