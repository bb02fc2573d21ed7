import { describe, expect, it } from 'vitest'
import { anEvent, keysOf, numbered, put, type World } from './world.ts'

export function describeCommits(world: World): void {
  describe('a commit', () => {
    it('is numbered by its last event, and so are the entries it wrote', async () => {
      expect(await world.store.revision()).toBe(0)
      expect(await world.store.commit([{ key: 'a', value: '1' }], numbered(3))).toBe(3)
      expect(await world.store.revision()).toBe(3)
      expect((await world.store.get('a'))?.revision).toBe(3)
      expect(await world.store.commit([], [anEvent])).toBe(4)
      expect(await world.store.revision()).toBe(4)
    })

    it('goes through when the entry has the expected revision', async () => {
      const first = await world.store.commit([{ key: 'a', value: '1', ifRevision: 0 }], [anEvent])
      const second = await world.store.commit([{ key: 'a', value: '2', ifRevision: first }], [anEvent])
      await world.store.commit([{ key: 'a', value: null, ifRevision: second }], [anEvent])
      await world.store.commit([{ key: 'a', value: '3', ifRevision: 0 }], [anEvent])
      expect(await world.store.get('a')).toEqual({ key: 'a', value: '3', revision: 4 })
    })

    it.each([
      ['exists though it should not', 'there', 0, 'there: is at revision 1, it should not exist'],
      ['was changed meanwhile', 'changed', 1, 'changed: is at revision 2, revision 1 was expected'],
      ['was never there', 'never', 1, 'never: does not exist, revision 1 was expected'],
      ['was deleted meanwhile', 'deleted', 1, 'deleted: does not exist, revision 1 was expected'],
    ])('fails when an entry %s, naming the key', async (_, key, ifRevision, message) => {
      await put(world.store, { there: '1', changed: '1', deleted: '1' })
      await put(world.store, { changed: '2', deleted: null })
      const commit = world.store.commit([{ key, value: '9', ifRevision }], [anEvent])
      await expect(commit).rejects.toMatchObject({ code: 'STATE_CONFLICT', message })
    })

    it('that fails has written nothing: no change, no event', async () => {
      await put(world.store, { a: '1', b: '1', gone: '1' })
      const changes = [
        { key: 'a', value: '2' },
        { key: 'gone', value: null },
        { key: 'new', value: '2' },
        { key: 'b', value: '2', ifRevision: 7 },
      ]
      await expect(world.store.commit(changes, numbered(2))).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
      expect((await world.store.list('')).map(({ key, value }) => key + value)).toEqual(['a1', 'b1', 'gone1'])
      expect(await world.store.events()).toHaveLength(1)
      expect(await put(world.store, { a: '3' })).toBe(2)
    })

    it('checks every condition against the state before it', async () => {
      await put(world.store, { a: '1', b: '1' })
      const swap = [
        { key: 'a', value: null, ifRevision: 1 },
        { key: 'b', value: '2', ifRevision: 1 },
        { key: 'c', value: '2', ifRevision: 0 },
      ]
      expect(await world.store.commit(swap, [anEvent])).toBe(2)
      expect(keysOf(await world.store.list(''))).toEqual(['b', 'c'])
    })

    it('refuses what could not be kept faithfully, and writes nothing of it', async () => {
      const refused = [
        [[{ key: '', value: '1' }], anEvent, 'a key must not be empty'],
        [
          [
            { key: 'a', value: '1' },
            { key: 'a', value: '2' },
          ],
          anEvent,
          'a: occurs twice in one commit',
        ],
        [[{ key: 'a\ud800', value: '1' }], anEvent, 'key is not well-formed text: "a\\ud800"'],
        [[{ key: 'a', value: '\udc00' }], anEvent, 'value is not well-formed text: "\\udc00"'],
        [[], { ...anEvent, cause: '\ud800' }, 'cause is not well-formed text: "\\ud800"'],
      ] as const
      for (const [changes, event, message] of refused) {
        await expect(world.store.commit([{ key: 'other', value: '1' }, ...changes], [event])).rejects.toThrow(message)
      }
      expect(await world.store.list('')).toEqual([])
      expect(await world.store.revision()).toBe(0)
    })

    it('one of whose events is no JSON fails whole', async () => {
      const commit = world.store.commit([{ key: 'a', value: '1' }], [anEvent, { ...anEvent, data: 1n }])
      await expect(commit).rejects.toThrow(/BigInt/)
      expect(await world.store.list('')).toEqual([])
      expect(await put(world.store, { a: '2' })).toBe(1)
    })

    it('of many writers at once: exactly one wins each revision, and no addition is lost', async () => {
      await put(world.store, { counter: '0' })
      const addOne = async (): Promise<void> => {
        for (;;) {
          const { value, revision } = (await world.store.get('counter')) ?? { value: '0', revision: 0 }
          const change = { key: 'counter', value: String(Number(value) + 1), ifRevision: revision }
          if (await world.store.commit([change], [anEvent]).catch(ifConflict)) return
        }
      }
      await Promise.all(Array.from({ length: 20 }, addOne))
      expect(await world.store.get('counter')).toEqual({ key: 'counter', value: '20', revision: 21 })
    })
  })
}

function ifConflict(error: unknown): false {
  if (error instanceof Error && 'code' in error && error.code === 'STATE_CONFLICT') return false
  throw error
}
