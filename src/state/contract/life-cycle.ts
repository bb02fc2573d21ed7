import { mkdtempDisposable, readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { anEvent, numbered, put, type World } from './world.ts'

export function describeLifeCycle(world: World): void {
  describe('closing and opening', () => {
    it('changes nothing', async () => {
      await world.store.commit([{ key: 'a', value: '1' }], numbered(3))
      await put(world.store, { b: '2', a: null })
      const before = [await world.store.list(''), await world.store.events()]
      const store = await world.reopen()
      expect([await store.list(''), await store.events()]).toEqual(before)
      expect(await store.commit([], [anEvent])).toBe(5)
    })

    it('may be done twice, after which nothing else may', async () => {
      await world.store.close()
      await world.store.close()
      await expect(world.store.get('a')).rejects.toThrow('is closed')
      await expect(world.store.commit([], [anEvent])).rejects.toThrow('is closed')
      await expect(world.store.backup('/nowhere')).rejects.toThrow('is closed')
    })
  })

  describe('a backup', () => {
    it('is one private file, and replaces the one before', async () => {
      await using directory = await mkdtempDisposable(join(tmpdir(), 'muster-backup-'))
      const file = join(directory.path, 'backup')
      await put(world.store, { a: '1' })
      await writeFile(file, 'the one before', { mode: 0o644 })
      await world.store.backup(file)
      expect(await readdir(directory.path)).toEqual(['backup'])
      const { mode, size } = await stat(file)
      expect(mode & 0o777).toBe(0o600)
      expect(size).toBeGreaterThan('the one before'.length)
    })

    it('that cannot be written leaves nothing behind, and the store in order', async () => {
      await using directory = await mkdtempDisposable(join(tmpdir(), 'muster-backup-'))
      await expect(world.store.backup(join(directory.path, 'missing', 'backup'))).rejects.toThrow(/ENOENT/)
      expect(await readdir(directory.path)).toEqual([])
      expect(await put(world.store, { a: '1' })).toBe(1)
    })

    it('is finished before the store closes', async () => {
      await using directory = await mkdtempDisposable(join(tmpdir(), 'muster-backup-'))
      const backup = world.store.backup(join(directory.path, 'backup'))
      await world.store.close()
      expect(await readdir(directory.path)).toEqual(['backup'])
      await backup
    })
  })
}
