import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import type { NewEvent } from '../state/store.ts'

/**
 * Two nodes that have changed machines, because an operator said so: kept under swap/NODE, and never written into the site. It is laid over
 * what places and MACs say. A machine that was up stays what it is until it boots.
 */
export const Swap = z.strictObject({
  node: z.string(),
  with: z.string(),
  by: z.string(),
  at: z.iso.datetime(),
  why: z.string().max(500).optional(),
  /** False once it was taken back, while machines still run as what it made them. */
  isActive: z.boolean(),
  /** Machines that have not booted since, and the nodes they run as: MAC → node. */
  running: z.record(z.string(), z.string()),
})
export type Swap = z.infer<typeof Swap>

export const SWAP = 'swap/'

/** What is to be written, and told. */
export interface SwapStep {
  /** Null where nothing is left of it. */
  readonly swaps: ReadonlyMap<string, Swap | null>
  readonly event: NewEvent
}

export interface SwapRequest {
  readonly node: string
  readonly with: string
  readonly why?: string | undefined
  readonly actor: { readonly name: string; readonly from: string }
  readonly at: string
  /** Machines of the two that are up, or on their way. */
  readonly running: Readonly<Record<string, string>>
}

export class Swaps {
  readonly #byNode: Map<string, Swap>

  constructor(swaps: Iterable<Swap> = []) {
    this.#byNode = new Map([...swaps].map(swap => [swap.node, swap]))
  }

  /** The one it is part of, as either side. */
  of(node: string): Swap | undefined {
    return this.#byNode.get(node) ?? [...this.#byNode.values()].find(swap => swap.with === node)
  }

  swap(request: SwapRequest): SwapStep {
    const { node, with: other, actor, at, why, running } = request
    if (node === other) throw new MusterError('SWAP_REFUSED', `${node} cannot change machines with itself`)
    for (const one of [node, other]) {
      const before = this.of(one)
      if (before === undefined) continue
      const partner = before.node === one ? before.with : before.node
      throw new MusterError(
        'SWAP_REFUSED',
        before.isActive
          ? `${one} has changed machines with ${partner} already`
          : `${one} still runs on the machine of ${partner}: it has not booted since that was taken back`,
        before.isActive ? { hint: `take it back first: muster node swap ${before.node} --undo` } : {},
      )
    }
    const swap: Swap = {
      node,
      with: other,
      by: actor.name,
      at,
      ...(why !== undefined && { why }),
      isActive: true,
      running,
    }
    return this.#step(swap, 'node.swapped', { actor: actor.name, from: actor.from }, why === undefined ? {} : { why })
  }

  undo(request: Omit<SwapRequest, 'with'>): SwapStep {
    const { actor, running, why } = request
    const before = this.of(request.node)
    if (before?.isActive !== true)
      throw new MusterError('SWAP_REFUSED', `${request.node} has not changed machines with another node`)
    // Who has not booted since still has its own machine.
    const swapped = Object.entries(running).filter(([mac]) => !Object.hasOwn(before.running, mac))
    const swap: Swap = { ...before, isActive: false, running: Object.fromEntries(swapped) }
    return this.#step(
      swap,
      'node.swap.undone',
      { actor: actor.name, from: actor.from },
      why === undefined ? {} : { why },
    )
  }

  /** A machine boots: from now on it is what it should be. */
  booted(mac: string): SwapStep | undefined {
    const before = [...this.#byNode.values()].find(({ running }) => Object.hasOwn(running, mac))
    if (before === undefined) return undefined
    const { [mac]: was, ...running } = before.running
    return this.#step({ ...before, running }, 'node.swap.booted', { actor: 'boot' }, { mac, was })
  }

  #step(swap: Swap, kind: string, who: Pick<NewEvent, 'actor' | 'from'>, data: object): SwapStep {
    const isOver = !swap.isActive && Object.keys(swap.running).length === 0
    if (isOver) this.#byNode.delete(swap.node)
    else this.#byNode.set(swap.node, swap)
    return {
      swaps: new Map([[swap.node, isOver ? null : swap]]),
      event: {
        kind,
        nodes: [swap.node, swap.with].toSorted().join(','),
        ...who,
        data: { node: swap.node, with: swap.with, ...data },
      },
    }
  }
}
