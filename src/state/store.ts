/**
 * The state of a cluster: a key-value store with one global revision, and a log of events that is only ever appended to.
 *
 *     await store.commit(
 *       [{ key: 'node/n001/power', value: '"on"', ifRevision: 41 }],
 *       [{ kind: 'node.power', nodes: 'n001', actor: 'bmc' }],
 *     ) // → 97: the event is number 97, and so is the entry's revision
 *
 * Events are numbered 1, 2, 3… without gaps; the number of the newest is the revision of the store. The manner is etcd's,
 * so that a backend on etcd can pass the same contract (`contract.ts`).
 */
export interface Store extends AsyncDisposable {
  /** The number of the newest event; 0 when there is none. */
  revision(): Promise<number>

  get(key: string): Promise<Entry | undefined>

  /** The entries whose key starts with the prefix, in bytewise order of their keys (UTF-8, not JavaScript's UTF-16). */
  list(prefix: string, options?: ListOptions): Promise<readonly Entry[]>

  /**
   * Makes all changes and appends all events, or does neither. Resolves once that survives a power loss, with the revision of
   * the last event, which the changed entries carry too. Where an `ifRevision` does not hold: `STATE_CONFLICT`, naming the key.
   */
  commit(changes: readonly Change[], events: readonly [NewEvent, ...NewEvent[]]): Promise<number>

  events(options?: EventQuery): Promise<readonly Event[]>

  /**
   * Every event after that revision, each exactly once and in order: those of the log first, then new ones as they are
   * committed. Ends when the signal aborts or the store closes. The log is what a slow reader catches up from, so it
   * neither holds up a writer nor makes anything queue in memory.
   */
  watch(after: number, signal: AbortSignal): AsyncIterable<readonly Event[]>

  /** Writes a consistent copy of everything into one file (mode 0600) that appears whole or not at all. */
  backup(file: string): Promise<void>

  /** Ends watches, waits for backups under way, lets go of the data. Closing twice is fine. */
  close(): Promise<void>
}

export interface Entry {
  /** Any well-formed text but the empty one. */
  readonly key: string
  /** JSON text, opaque to the store. */
  readonly value: string
  /** Of the commit that last wrote it. */
  readonly revision: number
}

export interface Change {
  readonly key: string
  /** null deletes; deleting what is not there is no error. A key may occur once in a commit. */
  readonly value: string | null
  /** Compare-and-set: the revision the entry has now; 0 says that there must be none. */
  readonly ifRevision?: number
}

export interface NewEvent {
  /** What happened, from general to special: `site.applied`, `node.boot.failed`. */
  readonly kind: string
  /** The nodes it happened to, as a folded node set. */
  readonly nodes?: string
  readonly actor: string
  readonly cause?: string
  readonly trace?: string
  readonly from?: string
  /** Anything JSON can say. */
  readonly data?: unknown
}

export interface Event extends NewEvent {
  readonly revision: number
  /** ISO 8601 with milliseconds, UTC. */
  readonly time: string
}

export interface ListOptions {
  /** Only keys that come after this one: the last key of the page before. */
  readonly after?: string
  readonly limit?: number
}

export interface EventQuery {
  /** Only events newer than this revision. */
  readonly after?: number
  /** Only events older than this revision. */
  readonly before?: number
  readonly limit?: number
  /** A kind, or `site.*` for all kinds that start with `site.`. */
  readonly kind?: string
  readonly newestFirst?: boolean
}

/** The most events a watch hands over at once. */
export const WATCH_BATCH = 500
