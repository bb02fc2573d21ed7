import { type Phase, WAITS, isLater } from '../../nodes/phases.ts'

/** An initramfs tries again for an hour; what failed so often here, where there is nobody else, fails for ever. */
const ENOUGH = 3

/** How far a boot has come. */
export class Progress {
  /** Where QEMU starts it. */
  #phase: Phase = 'kernel'
  #detail: string | undefined
  #failures = 0
  readonly #outcome = Promise.withResolvers<'ready' | 'failing'>()

  /** Settles when it is ready, or has failed so often that it never will be. */
  get outcome(): Promise<'ready' | 'failing'> {
    return this.#outcome.promise
  }

  see({ phase, detail }: { readonly phase: Phase | 'failed'; readonly detail?: string | undefined }): void {
    if (phase === 'failed') {
      this.#failures++
      this.#detail = detail
    } else if (phase === this.#phase) this.#detail = detail
    else if (isLater(phase, this.#phase)) {
      this.#phase = phase
      this.#detail = detail
    }
    if (this.#phase === 'ready') this.#outcome.resolve('ready')
    if (this.#failures >= ENOUGH) this.#outcome.resolve('failing')
  }

  /** For people: where it is, and what it said last. */
  get words(): string {
    const phase = this.#phase
    const waits = phase === 'ready' ? '' : `, waiting until ${WAITS[phase].until}`
    return `it has come to ${phase}${waits}${this.#detail === undefined ? '' : ` (${this.#detail})`}`
  }
}
