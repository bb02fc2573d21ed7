import { basename, dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { MusterError } from '../lib/errors.ts'
import { backupDatabase } from './backup.ts'
import { assertCommit } from './commit.ts'
import { explainSqlite, openDatabase } from './database.ts'
import { eventParameters, INSERT_EVENT, selectEvents, toEvent } from './events.ts'
import { COMPANIONS, createPrivate, realFile } from './files.ts'
import { afterKey, afterPrefix, compareBytewise } from './keys.ts'
import { lockState } from './lock.ts'
import { integer, type Row, text } from './rows.ts'
import {
  type Change,
  type Entry,
  type Event,
  type EventQuery,
  type ListOptions,
  type NewEvent,
  type Store,
  WATCH_BATCH,
} from './store.ts'
import { transaction } from './transaction.ts'
import { Wakeups } from './wakeups.ts'

export interface SqliteOptions {
  readonly now?: () => Date
}

/** Opens the state in that file, or begins one. Its directory must exist. */
export async function openSqliteStore(file: string, options: SqliteOptions = {}): Promise<Store> {
  const path = await realFile(file)
  const lock = await lockState(path)
  try {
    await createPrivate(path)
    return new SqliteStore(path, openDatabase(path), lock, options.now ?? (() => new Date()))
  } catch (error) {
    lock[Symbol.dispose]()
    throw error
  }
}

/** SQLite answers at once, so no two calls ever interleave; the promises are the interface's. */
class SqliteStore implements Store {
  readonly #file: string
  readonly #database: DatabaseSync
  readonly #lock: Disposable
  readonly #now: () => Date
  readonly #statements = new Map<string, StatementSync>()
  readonly #wakeups = new Wakeups()
  readonly #backups = new Set<Promise<void>>()
  /** Watches that are up to date all read the same next: they share it. Forgotten at every commit. */
  #lastRead: { readonly after: number; readonly batch: readonly Event[] } | undefined
  #closing: Promise<void> | undefined

  constructor(file: string, database: DatabaseSync, lock: Disposable, now: () => Date) {
    this.#file = file
    this.#database = database
    this.#lock = lock
    this.#now = now
  }

  async revision(): Promise<number> {
    return this.#use(() => this.#newest())
  }

  async get(key: string): Promise<Entry | undefined> {
    const row = this.#use(() => this.#statement('SELECT key, value, revision FROM entry WHERE key = ?').get(key))
    return row === undefined ? undefined : toEntry(row)
  }

  async list(prefix: string, options: ListOptions = {}): Promise<readonly Entry[]> {
    const next = options.after === undefined ? prefix : afterKey(options.after)
    const from = compareBytewise(next, prefix) > 0 ? next : prefix
    // Where the prefix has no end, an empty blob: SQLite orders blobs after all text.
    const to = afterPrefix(prefix) ?? Buffer.alloc(0)
    return this.#use(() =>
      this.#statement('SELECT key, value, revision FROM entry WHERE key >= ? AND key < ? ORDER BY key LIMIT ?')
        .all(from, to, options.limit ?? -1)
        .map(toEntry),
    )
  }

  async commit(changes: readonly Change[], events: readonly [NewEvent, ...NewEvent[]]): Promise<number> {
    assertCommit(changes, events)
    const revision = this.#use(() => transaction(this.#database, () => this.#write(changes, events)))
    this.#lastRead = undefined
    this.#wakeups.wakeAll()
    return revision
  }

  async events(options: EventQuery = {}): Promise<readonly Event[]> {
    return this.#read(options)
  }

  async *watch(after: number, signal: AbortSignal): AsyncGenerator<readonly Event[], void> {
    let seen = after
    while (!signal.aborted && this.#closing === undefined) {
      const batch = this.#readNext(seen)
      const last = batch.at(-1)
      if (last === undefined) {
        // In the same turn as the reading that found nothing, so that no commit can slip in between.
        await this.#wakeups.next(signal)
        continue
      }
      seen = last.revision
      yield batch
      // A long way to catch up: let others have their turn.
      if (batch.length === WATCH_BATCH) await setImmediate()
    }
  }

  async backup(file: string): Promise<void> {
    this.#assertOpen()
    const running = this.#backup(file)
    this.#backups.add(running)
    try {
      await running
    } finally {
      this.#backups.delete(running)
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#wakeups.wakeAll()
    await Promise.allSettled(this.#backups)
    this.#database.close()
    this.#lock[Symbol.dispose]()
  }

  async #backup(file: string): Promise<void> {
    const target = join(await realFile(dirname(file)), basename(file))
    const ours = ['', '.lock', ...COMPANIONS].map(suffix => this.#file + suffix)
    if (ours.includes(target))
      throw new MusterError('USAGE', `${file}: is the state itself`, { hint: 'name another file' })
    await backupDatabase(this.#file, target)
  }

  #write(changes: readonly Change[], events: readonly NewEvent[]): number {
    for (const change of changes) this.#assertRevision(change)
    let revision = this.#newest()
    const time = this.#now().toISOString()
    for (const event of events) this.#statement(INSERT_EVENT).run(...eventParameters(event, ++revision, time))
    const remove = this.#statement('DELETE FROM entry WHERE key = ?')
    const put = this.#statement(`INSERT INTO entry (key, value, revision) VALUES (?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision`)
    for (const { key, value } of changes) {
      if (value === null) remove.run(key)
      else put.run(key, value, revision)
    }
    return revision
  }

  #assertRevision({ key, ifRevision }: Change): void {
    if (ifRevision === undefined) return
    const row = this.#statement('SELECT revision FROM entry WHERE key = ?').get(key)
    const revision = row === undefined ? 0 : integer(row, 'revision')
    if (revision === ifRevision) return
    const found = revision === 0 ? 'does not exist' : `is at revision ${revision}`
    const expected = ifRevision === 0 ? 'it should not exist' : `revision ${ifRevision} was expected`
    throw new MusterError('STATE_CONFLICT', `${key}: ${found}, ${expected}`)
  }

  #newest(): number {
    return integer(this.#statement('SELECT coalesce(max(revision), 0) AS revision FROM event').get(), 'revision')
  }

  #read(query: EventQuery): readonly Event[] {
    const { sql, parameters } = selectEvents(query)
    return this.#use(() =>
      this.#statement(sql)
        .all(...parameters)
        .map(toEvent),
    )
  }

  #readNext(after: number): readonly Event[] {
    if (this.#lastRead?.after !== after) this.#lastRead = { after, batch: this.#read({ after, limit: WATCH_BATCH }) }
    return this.#lastRead.batch
  }

  #statement(sql: string): StatementSync {
    const kept = this.#statements.get(sql)
    if (kept !== undefined) return kept
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  #use<Result>(work: () => Result): Result {
    this.#assertOpen()
    try {
      return work()
    } catch (error) {
      throw explainSqlite(error, this.#file)
    }
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new Error(`${this.#file}: is closed`)
  }
}

const toEntry = (row: Row): Entry => ({
  key: text(row, 'key'),
  value: text(row, 'value'),
  revision: integer(row, 'revision'),
})
