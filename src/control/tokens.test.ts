import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import type { Actor } from './actor.ts'
import { type TestControl, startControl } from './testing.ts'
import { Tokens } from './tokens.ts'

const root: Actor = { name: 'root', role: 'admin', from: 'unix socket' }
const DAY = 86_400

/** Every byte the store keeps on disk, log and all. */
async function onDisk({ data }: TestControl): Promise<string> {
  const files = (await readdir(data)).filter(name => name.startsWith('state.db') && !name.endsWith('.lock'))
  return (await Promise.all(files.map(name => readFile(join(data, name), 'latin1')))).join('')
}

const refused = (code: string) => expect.objectContaining({ code }) as unknown

describe('tokens', () => {
  it('are made, listed without their secret, and let their holder in', async () => {
    await using world = await startControl()
    const clock = { now: new Date('2026-03-01T12:00:00Z') }
    const tokens = await Tokens.load(world.store, () => clock.now)
    const one = await tokens.create(root, 'grafana', 'viewer', DAY)
    clock.now = new Date('2026-03-01T13:00:00Z')
    const two = await tokens.create(root, 'olga', 'operator', 60)
    expect(one.token).toMatch(/^muster_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
    expect(one.info).toEqual({
      id: one.token.split('_')[1],
      name: 'grafana',
      role: 'viewer',
      createdAt: '2026-03-01T12:00:00.000Z',
      createdBy: 'root',
      expiresAt: '2026-03-02T12:00:00.000Z',
    })
    expect(tokens.list()).toEqual([one.info, two.info])
    expect(tokens.authenticate(one.token, '192.0.2.1')).toEqual({
      name: 'grafana',
      token: one.info.id,
      role: 'viewer',
      from: '192.0.2.1',
    })
    expect(tokens.authenticate(two.token, '192.0.2.1')).toEqual({
      name: 'olga',
      token: two.info.id,
      role: 'operator',
      from: '192.0.2.1',
    })
  })

  it('are stored as a hash: neither the database nor the events hold the secret', async () => {
    await using world = await startControl()
    const tokens = await Tokens.load(world.store)
    const { token, info } = await tokens.create(root, 'grafana', 'viewer', DAY)
    const secret = token.slice(`muster_${info.id}_`.length)
    const bytes = await onDisk(world)
    expect(bytes).toContain(info.id)
    expect(bytes).not.toContain(secret)
    expect(bytes).not.toContain(Buffer.from(secret, 'base64url').toString('latin1'))
    await world.store.backup(join(world.data, 'copy'))
    expect(await readFile(join(world.data, 'copy'), 'latin1')).not.toContain(secret)

    const hash = (JSON.parse((await world.store.list('token/'))[0]?.value ?? '{}') as { hash: string }).hash
    expect(JSON.stringify([tokens.list(), info, await world.store.events()])).not.toContain(hash)
  })

  it('leave a trail: who made or revoked what, from where', async () => {
    await using world = await startControl()
    const tokens = await Tokens.load(world.store)
    const { info } = await tokens.create(root, 'grafana', 'viewer', DAY)
    await tokens.revoke({ ...root, name: 'rita', from: '192.0.2.9' }, info.id)
    expect((await world.store.events()).map(({ kind, actor, from, data }) => ({ kind, actor, from, data }))).toEqual([
      { kind: 'token.created', actor: 'root', from: 'unix socket', data: info },
      { kind: 'token.revoked', actor: 'rita', from: '192.0.2.9', data: info },
    ])
  })

  it('are still known after a restart, and so is that one was revoked', async () => {
    await using world = await startControl()
    const before = await Tokens.load(world.store)
    const kept = await before.create(root, 'kept', 'admin', DAY)
    const gone = await before.create(root, 'gone', 'admin', DAY)
    await before.revoke(root, gone.info.id)
    const tokens = await Tokens.load(world.store)
    expect(tokens.list()).toEqual([kept.info])
    expect(tokens.authenticate(kept.token, 'x')).toMatchObject({ name: 'kept' })
    expect(() => tokens.authenticate(gone.token, 'x')).toThrow(refused('TOKEN_INVALID'))
  })

  it('end at once when revoked; what is not there cannot be revoked', async () => {
    await using world = await startControl()
    const tokens = await Tokens.load(world.store)
    const { token, info } = await tokens.create(root, 'grafana', 'viewer', DAY)
    await tokens.revoke(root, info.id)
    expect(() => tokens.authenticate(token, 'x')).toThrow(refused('TOKEN_INVALID'))
    expect(tokens.list()).toEqual([])
    await expect(tokens.revoke(root, info.id)).rejects.toMatchObject({ code: 'TOKEN_UNKNOWN' })
    await expect(tokens.revoke(root, '__proto__')).rejects.toMatchObject({ code: 'TOKEN_UNKNOWN' })
    expect(await world.store.revision()).toBe(2)
  })

  it('expire to the millisecond, by the clock they are given', async () => {
    await using world = await startControl()
    const clock = { now: new Date('2026-03-01T12:00:00.000Z') }
    const tokens = await Tokens.load(world.store, () => clock.now)
    const { token } = await tokens.create(root, 'short', 'viewer', 60)
    clock.now = new Date('2026-03-01T12:00:59.999Z')
    expect(tokens.authenticate(token, 'x')).toMatchObject({ name: 'short' })
    clock.now = new Date('2026-03-01T12:01:00.000Z')
    expect(() => tokens.authenticate(token, 'x')).toThrow(refused('TOKEN_EXPIRED'))
    // Whoever does not know the secret does not learn that there was such a token.
    expect(() => tokens.authenticate(withOther(token), 'x')).toThrow(refused('TOKEN_INVALID'))
  })

  it('that are wrong or rubbish are all refused with the very same words', async () => {
    await using world = await startControl()
    const tokens = await Tokens.load(world.store)
    const { token, info } = await tokens.create(root, 'grafana', 'viewer', DAY)
    const other = await tokens.create(root, 'other', 'admin', DAY)
    const otherSecret = other.token.slice(`muster_${other.info.id}_`.length)
    const wrong = [
      '',
      ' ',
      'muster',
      'muster__',
      token.slice(0, -1),
      `${token}A`,
      ` ${token}`,
      `${token}\n`,
      token.toUpperCase(),
      withOther(token),
      `muster_${info.id}_${otherSecret}`,
      `muster_${'0'.repeat(12)}_${otherSecret}`,
      `muster_${info.id}_${'A'.repeat(43)}`,
      `muster_${info.id}_`,
      '\0'.repeat(100),
      'é'.repeat(60),
      'A'.repeat(1_000_000),
      'constructor',
      `muster___proto_____${'A'.repeat(43)}`,
    ]
    const refusals = wrong.map(text => {
      try {
        return tokens.authenticate(text, 'x')
      } catch (error) {
        return error
      }
    })
    expect(refusals).toEqual(refusals.map(() => new MusterError('TOKEN_INVALID', 'the token is not valid')))
    expect(tokens.authenticate(token, 'x')).toMatchObject({ name: 'grafana' })
  })

  it('made at the same moment are all different', async () => {
    await using world = await startControl()
    const tokens = await Tokens.load(world.store)
    const made = await Promise.all(Array.from({ length: 50 }, () => tokens.create(root, 'same', 'viewer', DAY)))
    expect(new Set(made.map(({ info }) => info.id)).size).toBe(50)
    expect(tokens.list()).toHaveLength(50)
  })
})

/** The same token with another last-but-one character. */
const withOther = (token: string): string => {
  const at = token.length - 2
  return token.slice(0, at) + (token[at] === 'x' ? 'y' : 'x') + token.slice(at + 1)
}
