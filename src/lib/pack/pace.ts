import { setImmediate } from 'node:timers/promises'

/** Lets others have their turn (a spinner, Ctrl-C) in the middle of long synchronous work, and stops it when asked to. */
export class Pace {
  readonly #signal: AbortSignal | undefined
  #since = performance.now()

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
    signal?.throwIfAborted()
  }

  /** Cheap enough to be asked for every entry: `if (pace.due()) await pace.rest()`. */
  due(): boolean {
    return this.#signal?.aborted === true || performance.now() - this.#since > STRETCH
  }

  async rest(): Promise<void> {
    await setImmediate()
    this.#signal?.throwIfAborted()
    this.#since = performance.now()
  }
}

/** Milliseconds at a stretch. */
const STRETCH = 8
