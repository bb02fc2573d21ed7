import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { atOnce } from './at-once.ts'

/** Work that ends when the test says so. */
function workshop(): {
  readonly begun: string[]
  readonly work: (name: string) => Promise<string>
  readonly end: (name: string, error?: Error) => Promise<void>
} {
  const begun: string[] = []
  const open = new Map<string, PromiseWithResolvers<string>>()
  return {
    begun,
    work: name => {
      begun.push(name)
      const pending = Promise.withResolvers<string>()
      open.set(name, pending)
      return pending.promise
    },
    end: async (name, error) => {
      if (error === undefined) open.get(name)?.resolve(name.toUpperCase())
      else open.get(name)?.reject(error)
      await turn()
    },
  }
}

const free = (...names: readonly string[]): Map<string, string[]> => new Map(names.map(name => [name, []]))

describe('work at once', () => {
  test('is no more than so many, and the next begins when one ends', async () => {
    const { begun, work, end } = workshop()
    const all = atOnce(free('a', 'b', 'c'), 2, work)
    await turn()
    expect(begun).toEqual(['a', 'b'])
    await end('b')
    expect(begun).toEqual(['a', 'b', 'c'])
    await end('c')
    await end('a')
    expect(await all).toEqual(['A', 'B', 'C'])
  })

  test('begins when what it waits for has ended; others go before', async () => {
    const { begun, work, end } = workshop()
    const order = new Map([
      ['gpu', ['compute']],
      ['compute', ['base']],
      ['base', []],
      ['rescue', []],
    ])
    const all = atOnce(order, 2, work)
    await turn()
    expect(begun).toEqual(['base', 'rescue'])
    await end('rescue')
    expect(begun).toEqual(['base', 'rescue'])
    await end('base')
    await end('compute')
    expect(begun).toEqual(['base', 'rescue', 'compute', 'gpu'])
    await end('gpu')
    expect(await all).toEqual(['GPU', 'COMPUTE', 'BASE', 'RESCUE'])
  })

  test('that throws lets what runs end, and begins nothing more', async () => {
    const { begun, work, end } = workshop()
    let isOver = false
    const all = atOnce(free('a', 'b', 'c'), 2, work).finally(() => (isOver = true))
    all.catch(() => {})
    await turn()
    await end('a', new Error('interrupted'))
    expect({ begun, isOver }).toEqual({ begun: ['a', 'b'], isOver: false })
    await end('b')
    await expect(all).rejects.toThrow('interrupted')
    expect(begun).toEqual(['a', 'b'])
  })

  test('of nothing is nothing', async () => {
    expect(await atOnce(free(), 2, workshop().work)).toEqual([])
  })
})
