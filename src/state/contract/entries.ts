import { describe, expect, it } from 'vitest'
import { keysOf, put, type World } from './world.ts'

/** In bytewise order, which is not JavaScript's: there the emoji, two surrogates, would come before the private-use `\ue000`. */
const IN_ORDER = ['A', 'Z', 'a', 'a\0', 'a b', 'a/b', 'aa', 'é', '日本', '\u{e000}', '\u{ffff}', '😀', '\u{10ffff}']

export function describeEntries(world: World): void {
  describe('entries', () => {
    it('are read back as they were written', async () => {
      await put(world.store, { 'node/n001/power': '{"is":"on"}' })
      expect(await world.store.get('node/n001/power')).toEqual({
        key: 'node/n001/power',
        value: '{"is":"on"}',
        revision: 1,
      })
    })

    it('that do not exist are undefined', async () => {
      await put(world.store, { 'node/n001': '1' })
      expect(await world.store.get('node/n002')).toBeUndefined()
      expect(await world.store.get('node/n00')).toBeUndefined()
      expect(await world.store.get('')).toBeUndefined()
    })

    it('are gone once deleted; deleting them again is no error', async () => {
      await put(world.store, { a: '1', b: '2' })
      await put(world.store, { a: null })
      await put(world.store, { a: null, never: null })
      expect(await world.store.get('a')).toBeUndefined()
      expect(keysOf(await world.store.list(''))).toEqual(['b'])
    })

    it('have the revision of the commit that last wrote them', async () => {
      await put(world.store, { a: '1', b: '1' })
      await put(world.store, { b: '2', c: '2' })
      const revisions = (await world.store.list('')).map(({ key, revision }) => [key, revision])
      expect(revisions).toEqual([
        ['a', 1],
        ['b', 2],
        ['c', 2],
      ])
    })

    it.each(IN_ORDER)('may have the key %j, and any text as value', async key => {
      const value = `"${key} ≠ 😀"`
      await put(world.store, { [key]: value })
      expect(await world.store.get(key)).toEqual({ key, value, revision: 1 })
    })

    it('may be large', async () => {
      const value = JSON.stringify('x'.repeat(1_000_000))
      await put(world.store, { large: value })
      expect((await world.store.get('large'))?.value).toBe(value)
    })
  })

  describe('a list', () => {
    it('is in bytewise order of the keys', async () => {
      await put(world.store, Object.fromEntries(IN_ORDER.toReversed().map(key => [key, '1'])))
      expect(keysOf(await world.store.list(''))).toEqual(IN_ORDER)
    })

    it.each([
      ['node/', ['node/', 'node/n1', 'node/n1/x', 'node/n10', 'node/n2']],
      ['node/n1', ['node/n1', 'node/n1/x', 'node/n10']],
      ['node/n1/', ['node/n1/x']],
      ['node0', ['node0']],
      ['node%', []],
      ['NODE', []],
      ['é', ['é1']],
      ['\u{d7ff}', ['\u{d7ff}1']],
      ['\u{10ffff}', ['\u{10ffff}', '\u{10ffff}\u{10ffff}1']],
      ['\u{10ffff}\u{10ffff}', ['\u{10ffff}\u{10ffff}1']],
    ])('of prefix %j has %j', async (prefix, expected) => {
      const near = ['node', 'node/', 'node/n1', 'node/n1/x', 'node/n10', 'node/n2', 'node0', 'n_de/', 'Node/', 'nodé']
      const far = ['é1', 'e\u{301}', '\u{d7ff}1', '\u{e000}', '\u{10ffff}', '\u{10ffff}\u{10ffff}1']
      await put(world.store, Object.fromEntries([...near, ...far].map(key => [key, '1'])))
      expect(keysOf(await world.store.list(prefix))).toEqual(expected)
    })

    it('comes in pages', async () => {
      await put(world.store, { 'a/1': '', 'b/1': '', 'b/2': '', 'b/20': '', 'b/3': '', 'c/1': '' })
      expect(keysOf(await world.store.list('b/', { limit: 2 }))).toEqual(['b/1', 'b/2'])
      expect(keysOf(await world.store.list('b/', { limit: 2, after: 'b/2' }))).toEqual(['b/20', 'b/3'])
      expect(keysOf(await world.store.list('b/', { limit: 2, after: 'b/3' }))).toEqual([])
    })

    it('after a key that is outside the prefix, or gone, is what comes after that in the order', async () => {
      await put(world.store, { 'a/1': '', 'b/1': '', 'b/3': '', 'c/1': '' })
      expect(keysOf(await world.store.list('b/', { after: 'a/1' }))).toEqual(['b/1', 'b/3'])
      expect(keysOf(await world.store.list('b/', { after: 'b/2' }))).toEqual(['b/3'])
      expect(keysOf(await world.store.list('b/', { after: 'c/1' }))).toEqual([])
    })

    it('may be of 20,000 entries, whole or in pages', async () => {
      const keys = Array.from({ length: 20_000 }, (_, index) => `node/n${String(index).padStart(5, '0')}`)
      await put(world.store, Object.fromEntries(keys.map(key => [key, `"${key}"`])))
      expect(keysOf(await world.store.list('node/'))).toEqual(keys)
      const paged: string[] = []
      for (;;) {
        const last = paged.at(-1)
        const page = await world.store.list('node/', { limit: 3_000, ...(last !== undefined && { after: last }) })
        if (page.length === 0) break
        paged.push(...keysOf(page))
      }
      expect(paged).toEqual(keys)
    })
  })
}
