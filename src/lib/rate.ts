/** Token buckets: each key may spend `burst` at once and `perSecond` in the long run. Keys that were quiet are forgotten. */
export class RateLimiter {
  readonly #perSecond: number
  readonly #burst: number
  readonly #now: () => number
  readonly #buckets = new Map<string, { left: number; at: number }>()

  constructor(perSecond: number, burst: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#now = now
  }

  /** Takes one from the key's bucket; false when it is empty. */
  take(key: string): boolean {
    const now = this.#now()
    if (this.#buckets.size > MAX_KEYS) this.#forgetFull(now)
    const bucket = this.#buckets.get(key) ?? { left: this.#burst, at: now }
    bucket.left = Math.min(this.#burst, bucket.left + ((now - bucket.at) / 1000) * this.#perSecond)
    bucket.at = now
    this.#buckets.set(key, bucket)
    if (bucket.left < 1) return false
    bucket.left -= 1
    return true
  }

  #forgetFull(now: number): void {
    const refill = (this.#burst / this.#perSecond) * 1000
    for (const [key, { at }] of this.#buckets) if (now - at >= refill) this.#buckets.delete(key)
    // All of them busy: somebody invents keys. Starting afresh is better than growing without end.
    if (this.#buckets.size > MAX_KEYS) this.#buckets.clear()
  }
}

const MAX_KEYS = 10_000
