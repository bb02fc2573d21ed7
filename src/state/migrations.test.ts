import { mkdtempDisposable } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { migrate, MIGRATIONS, SCHEMA_VERSION, schemaVersion } from './migrations.ts'
import { openSqliteStore } from './sqlite.ts'

describe('a state file of version 1', () => {
  it('is brought to the present version with everything that was in it', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'muster-migrations-'))
    const file = join(directory.path, 'state.db')
    using old = new DatabaseSync(file)
    migrate(old, MIGRATIONS.slice(0, 1))
    expect(schemaVersion(old)).toBe(1)
    old.exec(`
      INSERT INTO entry VALUES ('node/n001', '{"power":"on"}', 2), ('node/n002', '{"power":"off"}', 3);
      INSERT INTO event VALUES
        (1, '2026-01-01T00:00:00.000Z', 'site.applied', NULL, 'root', NULL, NULL, NULL, NULL),
        (2, '2026-01-01T00:00:01.000Z', 'node.power', 'n001', 'bmc', 'rollout 7', '4bf9', '10.77.0.1', '{"was":"off"}'),
        (3, '2026-01-01T00:00:02.000Z', 'node.power', 'n002', 'bmc', NULL, NULL, NULL, 'null');`)
    old.close()

    await using store = await openSqliteStore(file)
    expect(await store.list('')).toEqual([
      { key: 'node/n001', value: '{"power":"on"}', revision: 2 },
      { key: 'node/n002', value: '{"power":"off"}', revision: 3 },
    ])
    expect(await store.events({ kind: 'site.*' })).toEqual([
      { revision: 1, time: '2026-01-01T00:00:00.000Z', kind: 'site.applied', actor: 'root' },
    ])
    expect(await store.events({ kind: 'node.power' })).toEqual([
      {
        revision: 2,
        time: '2026-01-01T00:00:01.000Z',
        kind: 'node.power',
        nodes: 'n001',
        actor: 'bmc',
        cause: 'rollout 7',
        trace: '4bf9',
        from: '10.77.0.1',
        data: { was: 'off' },
      },
      { revision: 3, time: '2026-01-01T00:00:02.000Z', kind: 'node.power', nodes: 'n002', actor: 'bmc', data: null },
    ])
    expect(await store.commit([{ key: 'node/n001', value: '1', ifRevision: 2 }], [{ kind: 'x', actor: 'y' }])).toBe(4)
  })
})

describe('migrating', () => {
  it('to the present version is done once', () => {
    using database = new DatabaseSync(':memory:')
    migrate(database)
    migrate(database)
    expect(schemaVersion(database)).toBe(SCHEMA_VERSION)
  })

  it('stops at a step that fails, of which nothing is done', () => {
    using database = new DatabaseSync(':memory:')
    const broken = [
      'CREATE TABLE one (x)',
      'CREATE TABLE two (x); INSERT INTO nowhere VALUES (1)',
      'CREATE TABLE three (x)',
    ]
    expect(() => migrate(database, broken)).toThrow('no such table: nowhere')
    expect(schemaVersion(database)).toBe(1)
    expect(database.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'one' }])
    migrate(database, broken.with(1, 'CREATE TABLE two (x)'))
    expect(schemaVersion(database)).toBe(3)
  })
})
