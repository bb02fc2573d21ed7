import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import type { Store } from '../state/store.ts'
import { type Actor, Role } from './actor.ts'

/** A token as it is stored: the secret itself is only ever shown once, to whoever made it. */
const StoredToken = z.strictObject({
  id: z.string(),
  name: z.string(),
  role: Role,
  hash: z.string(),
  createdAt: z.string(),
  createdBy: z.string(),
  expiresAt: z.string(),
})
type StoredToken = z.infer<typeof StoredToken>

export type TokenInfo = Omit<StoredToken, 'hash'>

const PREFIX = 'token/'
const FORM = /^muster_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/

/** Bearer tokens for the API. Kept in memory as well: every request asks. */
export class Tokens {
  readonly #store: Store
  readonly #now: () => Date
  readonly #known: Map<string, StoredToken>

  private constructor(store: Store, now: () => Date, known: Map<string, StoredToken>) {
    this.#store = store
    this.#now = now
    this.#known = known
  }

  static async load(store: Store, now: () => Date = () => new Date()): Promise<Tokens> {
    const tokens = (await store.list(PREFIX)).map(entry => StoredToken.parse(JSON.parse(entry.value)))
    return new Tokens(store, now, new Map(tokens.map(token => [token.id, token])))
  }

  list(): TokenInfo[] {
    return [...this.#known.values()].map(withoutHash).sort((a, b) => a.createdAt.localeCompare(b.createdAt))
  }

  async create(actor: Actor, name: string, role: Role, seconds: number): Promise<{ token: string; info: TokenInfo }> {
    const id = randomBytes(6).toString('hex')
    const secret = randomBytes(32).toString('base64url')
    const now = this.#now()
    const stored: StoredToken = {
      id,
      name,
      role,
      hash: hashOf(secret),
      createdBy: actor.name,
      createdAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + seconds * 1000).toISOString(),
    }
    const info = withoutHash(stored)
    await this.#store.commit(
      [{ key: PREFIX + id, value: JSON.stringify(stored), ifRevision: 0 }],
      [{ kind: 'token.created', actor: actor.name, from: actor.from, data: info }],
    )
    this.#known.set(id, stored)
    return { token: `muster_${id}_${secret}`, info }
  }

  async revoke(actor: Actor, id: string): Promise<void> {
    const token = this.#known.get(id)
    if (token === undefined) throw new MusterError('TOKEN_UNKNOWN', `there is no token ${id}`)
    await this.#store.commit(
      [{ key: PREFIX + id, value: null }],
      [{ kind: 'token.revoked', actor: actor.name, from: actor.from, data: withoutHash(token) }],
    )
    this.#known.delete(id)
  }

  /** Who holds this token. Says the same about a wrong secret, a wrong id and rubbish. */
  authenticate(text: string, from: string): Actor {
    const [, id = '', secret = ''] = FORM.exec(text) ?? []
    const token = this.#known.get(id)
    if (token === undefined || !sameHash(token.hash, hashOf(secret)))
      throw new MusterError('TOKEN_INVALID', 'the token is not valid')
    if (token.expiresAt <= this.#now().toISOString())
      throw new MusterError('TOKEN_EXPIRED', `the token expired at ${token.expiresAt}`)
    return { name: token.name, token: token.id, role: token.role, from }
  }
}

// The secret has 256 random bits: a plain hash is enough, and quick on every request.
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')
const sameHash = (a: string, b: string): boolean => timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'))
const withoutHash = ({ id, name, role, createdAt, createdBy, expiresAt }: StoredToken): TokenInfo => ({
  id,
  name,
  role,
  createdAt,
  createdBy,
  expiresAt,
})
