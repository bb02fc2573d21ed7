import { describe, expect, it } from 'vitest'
import type { EventQuery, NewEvent } from '../store.ts'
import { anEvent, numbered, type World } from './world.ts'

const KINDS = [
  'site.applied',
  'site.refused',
  'node.boot.failed',
  'site',
  'sites.x',
  'node.boot',
  'site.applied',
  'Site.applied',
  'node.bootx',
]

export function describeEvents(world: World): void {
  describe('events', () => {
    it('are read back with every field they had, their number and their time', async () => {
      const full: NewEvent = {
        kind: 'node.boot.failed',
        nodes: 'n[001-128]',
        actor: 'agent',
        cause: 'rollout 7 – “été” 😀',
        trace: '4bf92f3577b34da6',
        from: '10.77.0.1',
        data: { step: 'root', tries: [1, 2.5, null], ok: false },
      }
      await world.store.commit([], [full, { kind: 'site.applied', actor: 'root' }])
      expect(await world.store.events()).toStrictEqual([
        { ...full, revision: 1, time: '2026-01-02T03:04:05.678Z' },
        { kind: 'site.applied', actor: 'root', revision: 2, time: '2026-01-02T03:04:05.678Z' },
      ])
    })

    it.each([null, 0, '', false, [], {}])('tell the data %j from none', async data => {
      await world.store.commit([], [{ ...anEvent, data }])
      expect((await world.store.events())[0]).toHaveProperty('data', data)
    })

    it('have the time of their commit, by the clock given, even when that goes back', async () => {
      await world.store.commit([], numbered(2))
      world.time = '2026-01-01T00:00:00Z'
      await world.store.commit([], [anEvent])
      expect((await world.store.events()).map(event => event.time)).toEqual([
        '2026-01-02T03:04:05.678Z',
        '2026-01-02T03:04:05.678Z',
        '2026-01-01T00:00:00.000Z',
      ])
    })

    it('are numbered 1, 2, 3… across commits, also those that failed', async () => {
      await world.store.commit([], numbered(2))
      await world.store.commit([{ key: 'a', value: '1', ifRevision: 9 }], numbered(5)).catch(() => undefined)
      await world.store.commit([], numbered(3))
      expect((await world.store.events()).map(event => event.revision)).toEqual([1, 2, 3, 4, 5])
    })

    it('are none at first', async () => {
      expect(await world.store.events()).toEqual([])
    })

    it.each<[EventQuery, number[]]>([
      [{}, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
      [{ after: 7 }, [8, 9]],
      [{ before: 3 }, [1, 2]],
      [{ after: 2, before: 5 }, [3, 4]],
      [{ after: 9 }, []],
      [{ limit: 2 }, [1, 2]],
      [{ limit: 0 }, []],
      [{ newestFirst: true, limit: 2 }, [9, 8]],
      [{ newestFirst: true, before: 3 }, [2, 1]],
      [{ kind: 'site.applied' }, [1, 7]],
      [{ kind: 'site' }, [4]],
      [{ kind: 'node' }, []],
      [{ kind: 'site.*' }, [1, 2, 7]],
      [{ kind: 'node.*' }, [3, 6, 9]],
      [{ kind: 'node.boot.*' }, [3]],
      [{ kind: 'nowhere.*' }, []],
      [{ kind: 'site.*', newestFirst: true, limit: 2 }, [7, 2]],
      [{ kind: 'site.*', after: 1, before: 7 }, [2]],
      [{ kind: 'site.applied', newestFirst: true, before: 7, limit: 5 }, [1]],
    ])('asked for with %j are %j', async (query, expected) => {
      for (const kind of KINDS) await world.store.commit([], [{ ...anEvent, kind }])
      expect((await world.store.events(query)).map(event => event.revision)).toEqual(expected)
    })
  })
}
