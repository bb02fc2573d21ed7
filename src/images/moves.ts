import { z } from 'zod'
import type { Entry } from '../state/store.ts'
import { Digest } from './manifest.ts'

/** Where channels are kept in the store: channel/NAME/CHANNEL. */
export const CHANNEL = 'channel/'

/** One move of a channel. */
export const Move = z.strictObject({
  digest: Digest.describe('What it points to since.'),
  at: z.iso.datetime().describe('When.'),
  by: z.string().describe('Who moved it.'),
  reason: z.string().describe('Why; empty if nothing was said.'),
  from: z.string().optional().describe('The channel it was promoted from.'),
  back: z.boolean().describe('Whether this took back the move before.'),
})
export type Move = z.infer<typeof Move>

const Stored = z.strictObject({ moves: z.array(Move).min(1) })

/** A channel and its moves, newest first. */
export interface ChannelHistory {
  readonly name: string
  readonly channel: string
  readonly moves: readonly [Move, ...Move[]]
}

export const movesOf = (value: string): [Move, ...Move[]] => Stored.parse(JSON.parse(value)).moves as [Move, ...Move[]]

/** Of the entries of a store below `channel/`. */
export const channelsIn = (entries: Iterable<Pick<Entry, 'key' | 'value'>>): ChannelHistory[] =>
  Array.from(entries, ({ key, value }) => {
    const [name = '', channel = ''] = key.slice(CHANNEL.length).split('/')
    return { name, channel, moves: movesOf(value) }
  })

/** Moves that still stand, oldest first: a move back takes itself and the one before away. */
export function stackOf(moves: readonly Move[]): Move[] {
  const stack: Move[] = []
  for (const move of moves.toReversed()) {
    if (move.back) stack.pop()
    else stack.push(move)
  }
  return stack
}

/** Milliseconds for which a channel pointed to it, all times together. */
export function timeIn(moves: readonly Move[], digest: string, now: Date): number {
  let sum = 0
  let until = now.getTime()
  for (const move of moves) {
    const since = Date.parse(move.at)
    if (move.digest === digest) sum += Math.max(0, until - since)
    until = since
  }
  return sum
}
