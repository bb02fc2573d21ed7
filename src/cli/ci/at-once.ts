import type { Order } from './order.ts'

/**
 * Works on all names, up to `most` at once, each after those it waits for. Where one throws, no other is begun; those that
 * run are waited for, and then it is thrown. The results are in the order of the names.
 */
export async function atOnce<Result>(
  order: Order,
  most: number,
  work: (name: string) => Promise<Result>,
): Promise<Result[]> {
  const waiting = new Set(order.keys())
  const running = new Map<string, Promise<void>>()
  const results = new Map<string, Result>()
  const thrown: unknown[] = []
  const isReady = (name: string): boolean => (order.get(name) ?? []).every(one => results.has(one))
  const begin = async (name: string): Promise<void> => {
    try {
      results.set(name, await work(name))
    } catch (error) {
      thrown.push(error)
    }
    running.delete(name)
  }
  for (;;) {
    const next = thrown.length === 0 && running.size < most ? [...waiting].find(isReady) : undefined
    if (next !== undefined) {
      waiting.delete(next)
      running.set(next, begin(next))
    } else if (running.size > 0) await Promise.race(running.values())
    else break
  }
  if (thrown.length > 0) throw thrown[0]
  if (waiting.size > 0) throw new Error(`these wait for each other: ${[...waiting].join(', ')}`)
  return [...order.keys()].map(name => results.get(name) as Result)
}
