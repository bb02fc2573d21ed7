import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SETTINGS, type SiteSettings } from '../site/settings.ts'
import { failureOf } from '../site/testing.ts'
import { report } from '../state/observed.ts'
import { openSqliteStore } from '../state/sqlite.ts'
import type { Store } from '../state/store.ts'
import { Channels } from './channels.ts'
import { stackOf, timeIn } from './moves.ts'
import { type Digest, type Manifest, manifestText } from './manifest.ts'
import { type TestStore, makeStore, publishImage } from './store/testing.ts'
import { keyId, newPrivateKey, parsePrivateKey, publicText, signBytes } from './trust/keys.ts'

const HOUR = 3_600_000
const ALICE = { name: 'alice', from: '10.0.0.7' }
const BOB = { name: 'bob', from: '10.0.0.8' }

let world: TestStore
let store: Store
let channels: Channels
let now: number
let images: { digest: Digest; manifest: Manifest }[]

beforeEach(async () => {
  now = Date.UTC(2026, 2, 1, 12)
  world = await makeStore(() => new Date(now))
  store = await openSqliteStore(join(world.dir, '..', 'state.db'))
  channels = new Channels(store, world.store, () => new Date(now))
  images = []
  for (const root of ['one', 'two', 'three'])
    images.push(await publishImage(world.store, 'compute', { kernel: 'kernel', squashfs: root }))
})
afterEach(async () => {
  await store.close()
  await world[Symbol.asyncDispose]()
})

const digestOf = (index: number): Digest => images[index]?.digest ?? 'sha256:'
const at = (index: number): string => `compute@${digestOf(index)}`
const promote = (index: number, channel = 'stable', reason = '') =>
  channels.promote(ALICE, { image: at(index), channel, reason })
/** What stands in its way, if anything does. */
const lacking = (index: number): Promise<string[]> =>
  promote(index).then(
    () => [],
    (error: unknown) => (error as { details: string[] }).details,
  )
const pointer = async (channel = 'stable'): Promise<string | undefined> =>
  (await channels.find('compute', channel))?.moves[0].digest

/** What the site says. */
const rule = (settings: Partial<SiteSettings>): Promise<number> =>
  store.commit(
    [
      {
        key: SETTINGS,
        value: JSON.stringify({
          site: 'test',
          networks: {},
          provision: { port: 7180, dhcp: 'none', unknown: 'ignore', dns: [], shell: false, loaders: {} },
          discovery: null,
          ...settings,
        }),
      },
    ],
    [{ kind: 'site.applied', actor: 'test' }],
  )

describe('promoting', () => {
  it('lets a channel point to an image, and says what it pointed to before', async () => {
    expect(await promote(0)).toEqual({
      name: 'compute',
      channel: 'stable',
      digest: digestOf(0),
      before: null,
      isUnchanged: false,
    })
    expect(await promote(1)).toMatchObject({ digest: digestOf(1), before: digestOf(0), isUnchanged: false })
    expect(await pointer()).toBe(digestOf(1))
  })

  it('by name means the newest', async () => {
    await channels.promote(ALICE, { image: 'compute', channel: 'dev', reason: '' })
    expect(await pointer('dev')).toBe(digestOf(2))
  })

  it('what another channel points to remembers where it came from', async () => {
    await promote(0, 'staging')
    await channels.promote(BOB, { image: 'compute@staging', channel: 'stable', reason: 'soaked' })
    expect((await channels.find('compute', 'stable'))?.moves).toEqual([
      {
        digest: digestOf(0),
        at: '2026-03-01T12:00:00.000Z',
        by: 'bob',
        reason: 'soaked',
        from: 'staging',
        back: false,
      },
    ])
  })

  it('again changes nothing and leaves no trace', async () => {
    await promote(0)
    const revision = await store.revision()
    expect(await promote(0)).toMatchObject({ isUnchanged: true })
    expect(await store.revision()).toBe(revision)
  })

  it('is an event with who and why', async () => {
    await promote(0, 'stable', 'first')
    expect(await store.events({ kind: 'image.promoted' })).toMatchObject([
      {
        actor: 'alice',
        from: '10.0.0.7',
        data: { name: 'compute', channel: 'stable', digest: digestOf(0), before: null, reason: 'first' },
      },
    ])
  })

  it('what is not there is refused', async () => {
    expect(await failureOf(() => channels.promote(ALICE, { image: 'computr', channel: 'dev', reason: '' }))).toBe(
      'IMAGE_UNKNOWN: no image is named computr — did you mean compute?',
    )
    expect(
      await failureOf(() => channels.promote(ALICE, { image: 'compute@dev', channel: 'stable', reason: '' })),
    ).toBe('CHANNEL_UNKNOWN: nothing was ever promoted to compute@dev')
  })

  it('many at once loses none that was acknowledged', async () => {
    const all = await Promise.allSettled(Array.from({ length: 12 }, (_, index) => promote(index % 3)))
    const moved = all.flatMap(one => (one.status === 'fulfilled' && !one.value.isUnchanged ? [one.value.digest] : []))
    const refused = all.flatMap(one => (one.status === 'rejected' ? [(one.reason as { code: string }).code] : []))
    const { moves } = (await channels.find('compute', 'stable')) ?? { moves: [] }
    expect(moves.map(({ digest }) => digest).sort()).toEqual(moved.sort())
    expect(new Set(refused).isSubsetOf(new Set(['STATE_CONFLICT']))).toBe(true)
  })
})

describe('rolling back', () => {
  it('gives the image before, and once more the one before that', async () => {
    for (const index of [0, 1, 2]) await promote(index)
    expect(await channels.rollback(BOB, 'compute', 'stable', 'broken')).toMatchObject({
      digest: digestOf(1),
      before: digestOf(2),
    })
    expect(await channels.rollback(BOB, 'compute', 'stable', 'also broken')).toMatchObject({ digest: digestOf(0) })
    expect(await failureOf(() => channels.rollback(BOB, 'compute', 'stable', ''))).toBe(
      'CHANNEL_REFUSED: compute@stable has pointed to nothing before',
    )
  })

  it('and promoting again goes on from there', async () => {
    for (const index of [0, 1]) await promote(index)
    await channels.rollback(BOB, 'compute', 'stable', '')
    await promote(2)
    expect(await channels.rollback(BOB, 'compute', 'stable', '')).toMatchObject({ digest: digestOf(0) })
  })

  it('is in the history with who and why', async () => {
    for (const index of [0, 1]) await promote(index)
    await channels.rollback(BOB, 'compute', 'stable', 'broken')
    const { moves } = (await channels.find('compute', 'stable')) ?? { moves: [] }
    expect(moves.map(({ by, back, reason }) => [by, back, reason])).toEqual([
      ['bob', true, 'broken'],
      ['alice', false, ''],
      ['alice', false, ''],
    ])
  })

  it('of a channel that is none is refused', async () => {
    await promote(0)
    expect(await failureOf(() => channels.rollback(BOB, 'compute', 'stabel', ''))).toBe(
      'CHANNEL_UNKNOWN: nothing was ever promoted to compute@stabel — did you mean compute@stable?',
    )
  })
})

describe('a channel that asks for', () => {
  it('a size takes no larger ones', async () => {
    await rule({ channels: { stable: { size: '100 kB' } } })
    expect(await failureOf(() => promote(0))).toMatch(/^CHANNEL_REFUSED: compute@sha256:[0-9a-f]{12} may not become/)
    await rule({ channels: { stable: { size: '200 kB' } } })
    await promote(0)
  })

  it('a time in another channel counts it', async () => {
    await rule({ channels: { stable: { after: { channel: 'staging', time: '2h' } } } })
    expect(await lacking(0)).toEqual(['it was in staging for 0 s, and stable wants 2 h there first'])
    await promote(0, 'staging')
    now += HOUR
    expect(await lacking(0)).toEqual(['it was in staging for 60 min, and stable wants 2 h there first'])
    // Another one is there meanwhile: that does not count.
    await promote(1, 'staging')
    now += 5 * HOUR
    expect(await lacking(0)).toHaveLength(1)
    await promote(0, 'staging')
    now += HOUR
    expect(await lacking(0)).toEqual([])
  })

  it('a signature wants one of the keys it names', async () => {
    const key = parsePrivateKey(newPrivateKey(), 'ci.pem')
    const trust = { keys: { ci: { public: publicText(key) } } }
    await rule({ trust, channels: { stable: { signed: ['ci'] } } })
    expect(await lacking(0)).toEqual(['stable wants a signature of ci; it has none'])
    await sign(0, key)
    expect(await lacking(0)).toEqual([])
    await sign(1, key)
    expect(await lacking(1)).toEqual([])
    await rule({
      trust: { keys: { ci: { public: publicText(key), revoked: '2026-03-01' } } },
      channels: { stable: { signed: ['ci'] } },
    })
    expect(await lacking(2)).toEqual(['stable wants a signature of ci; it has none'])
    // What a revoked key signed is no image to go back to.
    expect(await failureOf(() => channels.rollback(BOB, 'compute', 'stable', ''))).toMatch(/may not become .* again$/)
    expect(await pointer()).toBe(digestOf(1))
  })
})

async function sign(index: number, key: ReturnType<typeof parsePrivateKey>): Promise<void> {
  const { digest, manifest } = images[index] as { digest: Digest; manifest: Manifest }
  const signature = signBytes(Buffer.from(manifestText(manifest)), key)
  const seen = new Date(now).toISOString()
  await world.store.describe(digest, about => ({
    ...about,
    signatures: [{ key: keyId(publicText(key)), signature, seen }],
  }))
}

describe('what is said of an image', () => {
  it('is believed of keys the site knows only', async () => {
    const key = parsePrivateKey(newPrivateKey(), 'ci.pem')
    const { digest, manifest } = images[0] as { digest: Digest; manifest: Manifest }
    const signature = signBytes(Buffer.from(manifestText(manifest)), key)
    const about = { signatures: [{ key: keyId(publicText(key)), signature, seen: new Date(now).toISOString() }] }
    const accept = () => channels.accept({ name: 'compute', digest }, manifest, about)
    expect(await failureOf(accept)).toMatch(/^IMAGE_UNTRUSTED: .*the site knows no key/)
    await rule({ trust: { keys: { ci: { public: publicText(key) } } } })
    await accept()
  })
})

it('a channel that is forgotten is gone, and so are the images that only it pointed to', async () => {
  for (const index of [0, 1, 2]) await promote(index, 'feature-x')
  await promote(1, 'stable')
  await report(store, 'n1', { image: { value: digestOf(2) } }, { actor: 'agent' }, new Date(now))
  expect(await channels.remove(BOB, 'compute', 'feature-x')).toEqual([digestOf(0)])
  expect((await channels.list()).map(({ channel }) => channel)).toEqual(['stable'])
  expect((await world.store.images('compute')).map(({ digest }) => digest)).toEqual([digestOf(2), digestOf(1)])
  expect(await store.events({ kind: 'image.unchannelled' })).toMatchObject([{ actor: 'bob' }])
})

const move = (digest: string, hour: number, back = false) => ({
  digest,
  at: new Date(Date.UTC(2026, 0, 1, hour)).toISOString(),
  by: 'x',
  reason: '',
  back,
})

describe('moves', () => {
  it('that were taken back stand no more', () => {
    const moves = [move('b', 5), move('a', 4, true), move('c', 3), move('b', 2), move('a', 1)]
    expect(stackOf(moves).map(({ digest }) => digest)).toEqual(['a', 'b', 'b'])
  })

  it('say for how long an image was there, all times together', () => {
    const moves = [move('a', 8), move('b', 4), move('a', 1)]
    expect(timeIn(moves, 'a', new Date(Date.UTC(2026, 0, 1, 10))) / HOUR).toBe(5)
    expect(timeIn(moves, 'b', new Date(Date.UTC(2026, 0, 1, 10))) / HOUR).toBe(4)
    expect(timeIn(moves, 'c', new Date(Date.UTC(2026, 0, 1, 10)))).toBe(0)
  })
})
