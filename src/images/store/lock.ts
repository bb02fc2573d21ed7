import { setTimeout as pause } from 'node:timers/promises'
import { MusterError } from '../../lib/errors.ts'
import { Mutex } from '../../lib/mutex.ts'
import { tryLock } from '../../state/lock.ts'

const PATIENCE = 60_000
const LONGEST_PAUSE = 40

/**
 * Publishing, removing and cleaning up exclude each other, in this process and among all that use the directory. Each
 * takes a moment, so whoever comes second waits.
 */
export class StoreLock {
  readonly #file: string
  readonly #patience: number
  readonly #here = new Mutex()

  constructor(file: string, patience = PATIENCE) {
    this.#file = file
    this.#patience = patience
  }

  /** Not to be asked for again by the work itself. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#here.run(async () => {
      using _ = await this.#acquire()
      return await work()
    })
  }

  async #acquire(): Promise<Disposable> {
    const deadline = Date.now() + this.#patience
    for (;;) {
      const lock = await tryLock(this.#file)
      if (lock !== undefined) return lock
      if (Date.now() >= deadline) {
        throw new MusterError(
          'STATE_LOCKED',
          `${this.#file}: another muster has been changing the images for too long`,
          {
            hint: 'try again when it is done, or stop it',
          },
        )
      }
      // Of random length, so that those who wait do not ask in step.
      await pause(1 + Math.random() * LONGEST_PAUSE)
    }
  }
}
