import type { DatabaseSync } from 'node:sqlite'
import { integer } from './rows.ts'
import { transaction } from './transaction.ts'

/** "Must": in the header of every state file and backup, it tells them from other SQLite databases. */
export const APPLICATION_ID = 0x4d757374

/**
 * The layout of the database, one step per version. A released step is never edited: data written under it is out there.
 */
export const MIGRATIONS: readonly string[] = [
  // 1: entries and events.
  `PRAGMA application_id = ${APPLICATION_ID};
   CREATE TABLE entry (
     key TEXT PRIMARY KEY NOT NULL,
     value TEXT NOT NULL,
     revision INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE event (
     revision INTEGER PRIMARY KEY,
     time TEXT NOT NULL,
     kind TEXT NOT NULL,
     nodes TEXT,
     actor TEXT NOT NULL,
     cause TEXT,
     trace TEXT,
     origin TEXT,
     data TEXT
   ) STRICT;`,
  // 2: events of one kind ("site.applied") or one area ("site.*") are found without reading the whole log. SQLite ends
  // every index with the row's number, here the revision, so both also give the events in their order.
  `ALTER TABLE event ADD COLUMN area TEXT GENERATED ALWAYS AS (substr(kind, 1, instr(kind || '.', '.') - 1)) VIRTUAL;
   CREATE INDEX event_by_kind ON event (kind);
   CREATE INDEX event_by_area ON event (area);`,
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** Brings the database to the present version, one transaction per step; a step that fails leaves the version before it. */
export function migrate(database: DatabaseSync, steps: readonly string[] = MIGRATIONS): void {
  for (const [index, sql] of steps.entries()) {
    if (index < schemaVersion(database)) continue
    transaction(database, () => database.exec(`${sql}; PRAGMA user_version = ${index + 1}`))
  }
}

export const schemaVersion = (database: DatabaseSync): number => readPragma(database, 'user_version')

export const applicationId = (database: DatabaseSync): number => readPragma(database, 'application_id')

function readPragma(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return integer(database.prepare(`PRAGMA ${name}`).get(), name)
}
