import { readdir, watch } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { MusterError } from '../../lib/errors.ts'
import type { ImageStore } from './store.ts'
import { NO_ROOTS, makeStore, problems, wholeBlobs } from './testing.ts'

const ROUNDS = 8
const SIGNAL = -1
const PATIENCE = 240_000
const LARGE = 4_000_000

const program = (name: string): string => fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url))

/** Runs the publisher; the digests it knew to be published. */
async function publisher(dir: string, name: string, count: number, bytes: number, kill?: number): Promise<string[]> {
  const numbers = [count, bytes, ...(kill === undefined ? [] : [kill])].map(String)
  const args = [program('publisher'), dir, name, ...numbers]
  const { stdout } = await exec(process.execPath, args, {
    allow: kill === undefined ? [] : [SIGNAL],
    timeout: PATIENCE,
  })
  return stdout.toString('utf8').split('\n').slice(0, -1)
}

/** Looks at every blob as soon as it is visible, whether it is whole; once more at the end. */
async function watched(dir: string, signal: AbortSignal): Promise<void> {
  const known = new Set<string>()
  while (!signal.aborted) await wholeBlobs(dir, known)
  await wholeBlobs(dir)
}

describe('a process that is killed while it publishes', () => {
  it(
    `leaves whole blobs and whole images only, ${ROUNDS} times in a row, and nothing that cannot be cleaned up`,
    { timeout: PATIENCE },
    async () => {
      await using temporary = await makeStore()
      const { dir, store } = temporary
      const acknowledged: string[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const ended = new AbortController()
        const publishing = publisher(dir, 'compute', 1_000_000, LARGE, 1 + Math.random() * 600)
        const watching = watched(dir, ended.signal)
        acknowledged.push(...(await publishing.finally(() => ended.abort())))
        await watching
        expect(await problems(store)).toEqual([])
      }
      // Nothing that they left is in the way of the next.
      acknowledged.push(...(await publisher(dir, 'compute', 1, LARGE)))
      const listed = (await store.images('compute')).map(image => image.digest)
      expect(acknowledged.length).toBeGreaterThan(0)
      expect(listed).toEqual(expect.arrayContaining(acknowledged))
      // Each killed process may have published one more than it could say.
      expect(listed.length).toBeLessThanOrEqual(acknowledged.length + ROUNDS)

      await store.gc({ roots: NO_ROOTS, grace: 0 })
      expect(await readdir(join(dir, 'tmp'))).toEqual([])
      expect(await readdir(join(dir, 'names'))).toEqual(['compute.json'])
      expect(await wholeBlobs(dir)).toEqual([...(await store.references()).keys()].sort())
      expect(await problems(store)).toEqual([])
    },
  )
})

/** Cleans up, without any grace, whenever an image was published; what was removed in the end. */
async function cleanedUp(store: ImageStore, directory: string, signal: AbortSignal): Promise<string[]> {
  const removed: string[] = []
  try {
    for await (const _ of watch(directory, { signal }))
      removed.push(...(await store.gc({ roots: NO_ROOTS, grace: 0 })).removed.map(blob => blob.sha256))
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return removed
}

describe('several processes at once', () => {
  it(
    'lose no image of each other, not even while another cleans up without any grace',
    { timeout: PATIENCE },
    async () => {
      await using temporary = await makeStore()
      const { dir, store } = temporary
      const { sha256 } = await store.put('that nobody needs')
      const done = new AbortController()
      const publishers = Promise.all([
        publisher(dir, 'compute', 30, 300_000),
        publisher(dir, 'compute', 30, 300_000),
        publisher(dir, 'login', 30, 300_000),
      ]).finally(() => done.abort())
      const removed = cleanedUp(store, join(dir, 'names'), done.signal)
      const published = await publishers

      const listed = (await store.list()).map(image => `${image.name} ${image.digest}`)
      const expected = published.flatMap((digests, index) =>
        digests.map(one => `${index < 2 ? 'compute' : 'login'} ${one}`),
      )
      expect(listed.sort()).toEqual(expected.sort())
      expect(new Set(listed).size).toBe(90)
      expect(await removed).toContain(sha256)
      expect(await problems(store)).toEqual([])
    },
  )
})

describe('a full disk', () => {
  it('says so and leaves nothing half done', async () => {
    await using temporary = await makeStore()
    // In a mount namespace of its own: the small disk is gone with the process.
    const script = 'mount -t tmpfs -o size=1m,mode=700 tmpfs "$1" && exec "$2" "$3" "$1"'
    const args = ['-m', 'sh', '-c', script, 'sh', temporary.dir, process.execPath, program('full-disk')]
    const { stdout } = await exec('unshare', args)
    const full = new MusterError('DISK_FULL', `${temporary.dir}: no space is left on the disk`)
    expect(JSON.parse(stdout.toString('utf8'))).toEqual({
      tooLarge: { code: full.code, message: full.message, hint: full.hint },
      temporaryAfterwards: [],
      blobsAfterwards: 1,
      publishing: { code: full.code, message: full.message, hint: full.hint },
      images: ['sha256:the first'],
      problems: [],
      temporaryAtTheEnd: [],
      afterRoomWasMade: 'published',
    })
  })
})
