import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Lease, LeaseReturns } from './release.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const lease = (number: number): Lease => ({
  mac: `52:54:00:00:${(number >> 8).toString(16).padStart(2, '0')}:${(number & 255).toString(16).padStart(2, '0')}`,
  address: `10.77.${number >> 8}.${number & 255}`,
  server: '10.77.0.1',
})

function collecting(): { readonly returns: LeaseReturns; readonly sent: Lease[] } {
  const sent: Lease[] = []
  return { returns: new LeaseReturns(one => sent.push(one)), sent }
}

test('a lease is given back when no client has come for a moment', () => {
  const { returns, sent } = collecting()
  returns.add(lease(1))
  expect(sent).toEqual([])
  vi.advanceTimersByTime(200)
  expect(sent).toEqual([lease(1)])
})

test('only some are on their way at once; each that is confirmed makes room for the next', () => {
  const { returns, sent } = collecting()
  for (let number = 1; number <= 100; number++) returns.add(lease(number))
  vi.advanceTimersByTime(200)
  expect(sent).toHaveLength(32)
  returns.confirm(lease(1))
  returns.confirm(lease(2))
  expect(sent.slice(32)).toEqual([lease(33), lease(34)])
})

test('when too many wait they are given back although clients keep coming', () => {
  const { returns, sent } = collecting()
  for (let number = 1; number <= 1000; number++) returns.add(lease(number))
  expect(sent).toHaveLength(0)
  returns.add(lease(1001))
  expect(sent).toEqual([lease(1)])
})

test('one that is not confirmed is sent three times, then given up', () => {
  const { returns, sent } = collecting()
  returns.add(lease(1))
  vi.advanceTimersByTime(60_000)
  expect(sent).toEqual([lease(1), lease(1), lease(1)])
  expect(vi.getTimerCount()).toBe(0)
})

test('one that is confirmed is not sent again', () => {
  const { returns, sent } = collecting()
  returns.add(lease(1))
  vi.advanceTimersByTime(200)
  returns.confirm({ mac: '52:54:00:00:00:01', address: '10.77.0.1' })
  vi.advanceTimersByTime(60_000)
  expect(sent).toEqual([lease(1)])
})
