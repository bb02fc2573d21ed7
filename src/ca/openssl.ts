import { generateKeyPair, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MusterError } from '../lib/errors.ts'
import { exec } from '../lib/exec.ts'

/** What a certificate is to say. */
export interface CertificateWanted {
  /** Of whom it is; plain letters, digits, spaces, dots and dashes. */
  readonly name: string
  readonly from: Date
  readonly until: Date
  /** PEM of its own key. */
  readonly key: string
  /** Who signs it; it signs itself unless said, and may then sign others. */
  readonly issuer?: { readonly key: string; readonly certificate: string }
  /** Addresses and host names it is good for. */
  readonly hosts?: readonly string[]
}

const makePair = promisify(generateKeyPair)

/** PEM, PKCS #8. RSA, because loaders know nothing else. */
export async function newKey(bits: number): Promise<string> {
  const { privateKey } = await makePair('rsa', { modulusLength: bits })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

/** PEM of a certificate. What openssl needs for it is written into `dir` for a moment, and taken away again. */
export async function newCertificate(dir: string, wanted: CertificateWanted): Promise<string> {
  const work = await mkdtemp(join(dir, WORK))
  const path = (name: string): string => join(work, name)
  const { key, issuer, name } = wanted
  try {
    await writeFile(path('key'), key, { mode: 0o600 })
    await writeFile(path('index'), '')
    await writeFile(path('serial'), newSerial())
    await writeFile(path('config'), configOf(work, wanted))
    if (issuer !== undefined) {
      await writeFile(path('issuer.key'), issuer.key, { mode: 0o600 })
      await writeFile(path('issuer.pem'), issuer.certificate)
    }
    const config = ['-config', path('config')]
    await openssl(['req', '-new', ...config, '-key', path('key'), '-subj', `/CN=${name}`, '-out', path('request')])
    const signer =
      issuer === undefined
        ? ['-selfsign', '-keyfile', path('key')]
        : ['-keyfile', path('issuer.key'), '-cert', path('issuer.pem')]
    const dates = ['-startdate', asn1Time(wanted.from), '-enddate', asn1Time(wanted.until)]
    const out = ['-batch', '-notext', '-out', path('certificate')]
    await openssl(['ca', ...config, ...signer, ...dates, '-in', path('request'), ...out])
    return await readFile(path('certificate'), 'utf8')
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** What the names of our working directories begin with. */
export const WORK = 'work-'

const openssl = (args: readonly string[]): Promise<unknown> =>
  exec('openssl', args, { timeout: 120_000 }).catch((error: unknown) => {
    if (!(error instanceof MusterError) || !error.message.endsWith('is not installed')) throw error
    throw new MusterError('CA_FAILED', 'certificates cannot be made: openssl is not installed', { cause: error })
  })

/** 20260301120000Z */
const asn1Time = (date: Date): string => `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`

const configOf = (work: string, { issuer, hosts = [] }: CertificateWanted): string => `[req]
distinguished_name = nobody
[nobody]
[ca]
default_ca = ours
[ours]
database = ${work}/index
serial = ${work}/serial
new_certs_dir = ${work}
default_md = sha256
unique_subject = no
copy_extensions = none
policy = any
x509_extensions = said
[any]
commonName = supplied
[said]
subjectKeyIdentifier = hash
${issuer === undefined ? AUTHORITY : `${SERVER}subjectAltName = ${hosts.map(alternativeName).join(', ')}\n`}`

const AUTHORITY = `basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
`
const SERVER = `basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyEncipherment
extendedKeyUsage = serverAuth
authorityKeyIdentifier = keyid
`

/** Random, as RFC 5280 wants them: positive, and the same never twice. */
const newSerial = (): string => `40${randomBytes(15).toString('hex')}\n`

const alternativeName = (host: string): string => (isIP(host) === 0 ? `DNS:${host}` : `IP:${host}`)
