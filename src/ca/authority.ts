import { X509Certificate, createHash, createPrivateKey, randomBytes } from 'node:crypto'
import { open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { exists, makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { canonicalAddress } from '../lib/ip.ts'
import { Mutex } from '../lib/mutex.ts'
import { WORK, newCertificate, newKey } from './openssl.ts'

/** A certificate and its key, PEM. */
export interface ServerCertificate {
  readonly key: string
  readonly cert: string
}

/** What is known of a certificate; nothing of it is secret. */
export interface CertificateFacts {
  readonly subject: string
  /** SHA-256 of the certificate, as browsers and openssl show it. */
  readonly fingerprint: string
  readonly from: string
  readonly until: string
}

export interface AuthorityFacts {
  readonly authority: CertificateFacts
  /** SHA-256 of the text of ca.pem, as nodes are told it. */
  readonly sha256: string
  /** Absent as long as nobody listens. */
  readonly server?: CertificateFacts & { readonly hosts: readonly string[] }
}

const DAY = 86_400_000
const AUTHORITY_DAYS = 3653
const SERVER_DAYS = 90
const AUTHORITY_BITS = 3072
const SERVER_BITS = 2048
/** Clocks of nodes are off, some by hours: what is valid now was so yesterday. */
const BACK = DAY

/**
 * The certificate authority of this server: nodes that trust its certificate know whom they talk to, and the server knows
 * with `nodeKey` what it said to nodes. Made once, and from then on only read; what it signs renews itself.
 */
export class Authority {
  /** Text of ca.pem. */
  readonly pem: string
  /** Of that text. */
  readonly sha256: string
  /** With which boot ids and credentials of nodes are signed. */
  readonly nodeKey: Buffer
  readonly #dir: string
  readonly #key: string
  readonly #now: () => Date
  readonly #certificate: X509Certificate
  readonly #mutex = new Mutex()
  readonly #listeners = new Set<(made: ServerCertificate) => void>()
  #server: ServerCertificate | undefined

  private constructor(dir: string, made: Made, now: () => Date) {
    this.#dir = dir
    this.#key = made.key
    this.pem = made.pem
    this.nodeKey = made.nodeKey
    this.#now = now
    this.#certificate = new X509Certificate(made.pem)
    this.sha256 = createHash('sha256').update(made.pem).digest('hex')
  }

  /** Makes it, if there is none yet. */
  static async open(dir: string, now = () => new Date()): Promise<Authority> {
    if (!(await exists(dir))) await make(dir, now())
    const authority = new Authority(dir, await load(dir), now)
    // Whoever was killed may have left a key in there.
    for (const name of await readdir(dir))
      if (name.startsWith(WORK) || name.endsWith(NEW)) await rm(join(dir, name), { recursive: true, force: true })
    authority.#server = await loadServer(dir, authority.#certificate)
    return authority
  }

  /** Told of each new certificate of the server. */
  onRenewed(listener: (made: ServerCertificate) => void): void {
    this.#listeners.add(listener)
  }

  /** One that is good for these addresses for some time to come; the same as before, wherever that is. */
  async serverFor(addresses: readonly string[]): Promise<ServerCertificate> {
    return this.#mutex.run(async () => {
      const wanted = [...new Set([...addresses, ...ALWAYS, hostname()])].filter(isPlain)
      if (this.#server !== undefined && this.#isGood(this.#server.cert, wanted)) return this.#server
      return this.#issue(wanted)
    })
  }

  /** A new one at once, for what the last one was good for. */
  async renew(): Promise<AuthorityFacts> {
    await this.#mutex.run(async () => {
      const before = this.#server === undefined ? [] : hostsOf(new X509Certificate(this.#server.cert))
      await this.#issue([...new Set([...before, ...ALWAYS, hostname()])].filter(isPlain))
    })
    return this.facts()
  }

  facts(): AuthorityFacts {
    const server = this.#server && new X509Certificate(this.#server.cert)
    return {
      authority: factsOf(this.#certificate),
      sha256: this.sha256,
      ...(server !== undefined && { server: { ...factsOf(server), hosts: hostsOf(server) } }),
    }
  }

  #isGood(cert: string, hosts: readonly string[]): boolean {
    const certificate = new X509Certificate(cert)
    const [from, until] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()]
    const has = new Set(hostsOf(certificate))
    const now = this.#now().getTime()
    // A clock that was set back must not leave us with one that is not valid yet.
    return now >= from && until - now > (until - from) / 3 && hosts.every(host => has.has(host))
  }

  async #issue(hosts: readonly string[]): Promise<ServerCertificate> {
    const now = this.#now()
    const key = await newKey(SERVER_BITS)
    const last = this.#certificate.validToDate.getTime()
    const cert = await newCertificate(this.#dir, {
      name: 'Muster boot server',
      key,
      from: new Date(now.getTime() - BACK),
      until: new Date(Math.min(now.getTime() + SERVER_DAYS * DAY, last)),
      issuer: { key: this.#key, certificate: this.pem },
      hosts,
    })
    // Killed between the two, they do not belong together: then another pair is made.
    await put(join(this.#dir, FILES.serverKey), key, 0o600)
    await put(join(this.#dir, FILES.server), cert, 0o644)
    this.#server = { key, cert }
    for (const tell of this.#listeners) tell(this.#server)
    return this.#server
  }
}

interface Made {
  readonly key: string
  readonly pem: string
  readonly nodeKey: Buffer
}

const FILES = {
  key: 'ca.key',
  certificate: 'ca.pem',
  nodeKey: 'node.key',
  serverKey: 'server.key',
  server: 'server.pem',
} as const
const NEW = '.new'
const NODE_KEY_BYTES = 32
const ALWAYS = ['127.0.0.1', 'localhost']

/** Beside its place first: it is there as a whole or not at all. */
async function make(dir: string, now: Date): Promise<void> {
  const work = `${dir}${NEW}`
  await rm(work, { recursive: true, force: true })
  await makeDirectory(work, 0o700)
  const key = await newKey(AUTHORITY_BITS)
  const from = new Date(now.getTime() - BACK)
  const until = new Date(now.getTime() + AUTHORITY_DAYS * DAY)
  // Two servers of one site, or one before and after its loss, are told apart.
  const name = `Muster CA ${randomBytes(4).toString('hex')}`
  const certificate = await newCertificate(work, { name, key, from, until })
  await put(join(work, FILES.key), key, 0o600)
  await put(join(work, FILES.certificate), certificate, 0o644)
  await put(join(work, FILES.nodeKey), randomBytes(NODE_KEY_BYTES), 0o600)
  await rename(work, dir)
  await sync(dirname(dir))
}

async function load(dir: string): Promise<Made> {
  const read = (name: string): Promise<Buffer> =>
    readFile(join(dir, name)).catch((error: unknown) => {
      throw damaged(dir, `${name} cannot be read`, error)
    })
  const [key, pem] = [String(await read(FILES.key)), String(await read(FILES.certificate))]
  const nodeKey = await read(FILES.nodeKey)
  if (nodeKey.length !== NODE_KEY_BYTES) throw damaged(dir, `${FILES.nodeKey} does not have ${NODE_KEY_BYTES} bytes`)
  if (!belong(key, pem)) throw damaged(dir, `${FILES.key} and ${FILES.certificate} are no key and its certificate`)
  return { key, pem, nodeKey }
}

/** Undefined where another one has to be made anyway. */
async function loadServer(dir: string, issuer: X509Certificate): Promise<ServerCertificate | undefined> {
  const read = (name: string): Promise<string> => readFile(join(dir, name), 'utf8').catch(() => '')
  const [key, cert] = [await read(FILES.serverKey), await read(FILES.server)]
  return belong(key, cert) && new X509Certificate(cert).verify(issuer.publicKey) ? { key, cert } : undefined
}

function belong(key: string, certificate: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

const damaged = (dir: string, what: string, cause?: unknown): MusterError =>
  new MusterError('CA_FAILED', `${dir}: ${what}`, {
    ...(cause !== undefined && { cause }),
    hint: 'bring the directory back from a copy; or move it away for a new one, and boot every node anew',
  })

/** What it says is on disk before it has its name. */
async function put(file: string, content: string | Buffer, mode: number): Promise<void> {
  await writeFile(file + NEW, content, { mode, flush: true })
  await rename(file + NEW, file)
  await sync(dirname(file))
}

async function sync(directory: string): Promise<void> {
  await using handle = await open(directory, 'r')
  await handle.sync()
}

const factsOf = (certificate: X509Certificate): CertificateFacts => ({
  subject: certificate.subject,
  fingerprint: certificate.fingerprint256,
  from: certificate.validFromDate.toISOString(),
  until: certificate.validToDate.toISOString(),
})

/** `IP Address:10.77.0.1, DNS:localhost` */
const hostsOf = (certificate: X509Certificate): string[] =>
  (certificate.subjectAltName ?? '')
    .split(', ')
    .map(name => name.slice(name.indexOf(':') + 1))
    .map(host => (isIP(host) === 0 ? host : canonicalAddress(host)))

/** Names are written into a configuration of openssl. */
const isPlain = (host: string): boolean => /^[A-Za-z0-9:.-]{1,253}$/.test(host)
