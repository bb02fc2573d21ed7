import { afterEach, beforeEach, describe } from 'vitest'
import { describeCommits } from './contract/commits.ts'
import { describeEntries } from './contract/entries.ts'
import { describeEvents } from './contract/events.ts'
import { describeLifeCycle } from './contract/life-cycle.ts'
import { describeWatch } from './contract/watch.ts'
import type { World } from './contract/world.ts'
import type { Store } from './store.ts'

/** Somewhere to keep state, empty at first. Disposing of it leaves nothing behind. */
export interface Backend extends AsyncDisposable {
  /** Every time the same state. The one before has been closed. */
  open(options: { now: () => Date }): Promise<Store>
}

/** What every backend must do. Call it in a test file of the backend's own. */
export function describeStore(name: string, make: () => Promise<Backend>): void {
  describe(`the state in ${name}`, () => {
    let backend: Backend
    let store: Store
    let time: Date
    const open = async (): Promise<Store> => (store = await backend.open({ now: () => time }))
    const world: World = {
      get store() {
        return store
      },
      set time(iso: string) {
        time = new Date(iso)
      },
      async reopen() {
        await store.close()
        return open()
      },
    }

    beforeEach(async () => {
      time = new Date('2026-01-02T03:04:05.678Z')
      backend = await make()
      await open()
    })
    afterEach(async () => {
      await store.close()
      await backend[Symbol.asyncDispose]()
    })

    describeEntries(world)
    describeCommits(world)
    describeEvents(world)
    describeWatch(world)
    describeLifeCycle(world)
  })
}
