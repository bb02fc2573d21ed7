import type { Change, NewEvent, Store } from '../store.ts'

/** What the contract's tests are given: a fresh store for each. */
export interface World {
  readonly store: Store
  /** The clock stands still until a test sets it. */
  set time(iso: string)
  /** Closes the store and opens it again on the same state. */
  reopen(): Promise<Store>
}

/** An event, for tests in which it does not matter which. */
export const anEvent: NewEvent = { kind: 'test.happened', actor: 'test' }

/** Events that can be told apart: their data is `0`, `1`, `2`… */
export const numbered = (count: number): [NewEvent, ...NewEvent[]] => [
  { ...anEvent, data: 0 },
  ...Array.from({ length: count - 1 }, (_, index) => ({ ...anEvent, data: index + 1 })),
]

/** Commits values by key, with one event. */
export const put = (store: Store, values: Readonly<Record<string, string | null>>): Promise<number> =>
  store.commit(
    Object.entries(values).map(([key, value]): Change => ({ key, value })),
    [anEvent],
  )

export const keysOf = (entries: readonly { key: string }[]): string[] => entries.map(entry => entry.key)
