import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Event, type Store, WATCH_BATCH } from '../store.ts'
import { anEvent, numbered, type World } from './world.ts'

/** Watches until it has seen that revision, and then stops listening. */
async function seenUntil(store: Store, after: number, until: number): Promise<Event[]> {
  const seen: Event[] = []
  const stop = new AbortController()
  for await (const batch of store.watch(after, stop.signal)) {
    seen.push(...batch)
    if ((seen.at(-1)?.revision ?? 0) >= until) stop.abort()
  }
  return seen
}

export function describeWatch(world: World): void {
  describe('a watch', () => {
    it('gives what is in the log first, then what happens', async () => {
      await world.store.commit([], numbered(3))
      const stop = new AbortController()
      const watch = world.store.watch(1, stop.signal)[Symbol.asyncIterator]()
      expect((await watch.next()).value).toEqual(await world.store.events({ after: 1 }))
      const next = watch.next()
      await world.store.commit([], [{ ...anEvent, data: 'live' }])
      expect((await next).value).toMatchObject([{ revision: 4, data: 'live' }])
      stop.abort()
      expect(await watch.next()).toEqual({ done: true, value: undefined })
    })

    it('ends when aborted while it waits, before it began, or with more to come', async () => {
      const stop = new AbortController()
      const waiting = world.store.watch(0, stop.signal)[Symbol.asyncIterator]().next()
      stop.abort()
      expect((await waiting).done).toBe(true)
      await world.store.commit([], [anEvent])
      expect((await world.store.watch(0, AbortSignal.abort())[Symbol.asyncIterator]().next()).done).toBe(true)
    })

    it('ends when the store closes', async () => {
      const waiting = world.store.watch(0, new AbortController().signal)[Symbol.asyncIterator]().next()
      await world.store.close()
      expect((await waiting).done).toBe(true)
    })

    it('may start at a revision that is still to come', async () => {
      const seen = seenUntil(world.store, 2, 4)
      for (let count = 0; count < 4; count++) await world.store.commit([], [anEvent])
      expect((await seen).map(event => event.revision)).toEqual([3, 4])
    })

    it('hears nothing of a commit that failed', async () => {
      const seen = seenUntil(world.store, 0, 1)
      await world.store.commit([{ key: 'a', value: '1', ifRevision: 1 }], [anEvent]).catch(() => undefined)
      await world.store.commit([], [{ ...anEvent, kind: 'test.kept' }])
      expect(await seen).toMatchObject([{ revision: 1, kind: 'test.kept' }])
    })

    it('loses nothing and repeats nothing while many write, wherever it starts and whenever it resumes', async () => {
      const [writers, commits, total] = [8, 40, 8 * 40 * 2]
      const write = async (): Promise<void> => {
        for (let count = 0; count < commits; count++) {
          await world.store.commit([], numbered(2))
          if (count % 3 === 0) await setImmediate()
        }
      }
      const resuming = async (): Promise<Event[]> => {
        const seen: Event[] = []
        for (;;) {
          const more = await seenUntil(world.store, seen.length, seen.length + 1)
          seen.push(...more)
          if (more.length === 0 || seen.length >= total) return seen
        }
      }
      const watches = [seenUntil(world.store, 0, total), seenUntil(world.store, 0, total), resuming()]
      const late = setImmediate().then(() => seenUntil(world.store, 100, total))
      await Promise.all(Array.from({ length: writers }, write))
      const log = await world.store.events()
      expect(log.map(event => event.revision)).toEqual(Array.from({ length: total }, (_, index) => index + 1))
      for (const seen of await Promise.all(watches)) expect(seen).toEqual(log)
      expect(await late).toEqual(log.slice(100))
    })

    it('that is slow holds up no writer, and catches up in batches of bounded size', async () => {
      const total = 1 + 5 * WATCH_BATCH
      await world.store.commit([], [anEvent])
      const stop = new AbortController()
      let seen = 0
      for await (const batch of world.store.watch(0, stop.signal)) {
        expect(batch.length).toBeLessThanOrEqual(WATCH_BATCH)
        expect(batch.map(event => event.revision)).toEqual(batch.map((_, index) => seen + 1 + index))
        // While it is busy with its first event it reads nothing; that these commits resolve shows that nobody waits for it.
        if (seen === 0) for (let count = 0; count < 5; count++) await world.store.commit([], numbered(WATCH_BATCH))
        seen += batch.length
        if (seen === total) stop.abort()
      }
      expect(seen).toBe(total)
    })

    it('goes on after the store was closed and opened again', async () => {
      await world.store.commit([], numbered(3))
      const seen = await seenUntil(world.store, 0, 3)
      const store = await world.reopen()
      await store.commit([], numbered(2))
      seen.push(...(await seenUntil(store, seen.length, 5)))
      expect(seen).toEqual(await store.events())
    })
  })
}
