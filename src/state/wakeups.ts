/** Lets many readers sleep until something new is there. Nothing is handed over: whoever wakes looks for itself. */
export class Wakeups {
  readonly #sleepers = new Set<() => void>()

  /** Resolves at the next `wakeAll`, or when the signal aborts. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal.aborted) return resolve()
      const wake = (): void => {
        this.#sleepers.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#sleepers.add(wake)
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  wakeAll(): void {
    for (const wake of this.#sleepers) wake()
  }
}
