import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { selectEvents } from './events.ts'
import { migrate } from './migrations.ts'
import type { EventQuery } from './store.ts'

describe('a question for events', () => {
  it.each<[EventQuery, string]>([
    [{}, 'SCAN event'],
    [{ newestFirst: true }, 'SCAN event'],
    [{ after: 5, before: 9 }, 'SEARCH event USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)'],
    [{ kind: 'site.applied' }, 'SEARCH event USING INDEX event_by_kind (kind=?)'],
    [
      { kind: 'site.applied', before: 9, newestFirst: true },
      'SEARCH event USING INDEX event_by_kind (kind=? AND rowid<?)',
    ],
    [{ kind: 'site.*' }, 'SEARCH event USING INDEX event_by_area (area=?)'],
    [{ kind: 'site.*', after: 5, newestFirst: true }, 'SEARCH event USING INDEX event_by_area (area=? AND rowid>?)'],
    [{ kind: 'node.boot.*', after: 5 }, 'SEARCH event USING INDEX event_by_area (area=? AND rowid>?)'],
  ])('like %j is answered in one step, without sorting: %s', (query, plan) => {
    using database = new DatabaseSync(':memory:')
    migrate(database)
    const { sql, parameters } = selectEvents({ ...query, limit: 10 })
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters)
    expect(steps.map(step => step['detail'])).toEqual([plan])
  })
})
