import { expect, test } from 'vitest'
import { Screen } from './screen.ts'

test('shows the last twenty lines, what can be printed of them', () => {
  const screen = new Screen()
  for (let line = 1; line <= 30; line++) screen.add(Buffer.from(`line ${line}\r\n`))
  screen.add(Buffer.from('\u001B[0;32m  OK  \u001B[0m ready \u0007\u0000ä\u009B\u202E\tend\n\n'))
  screen.add(Buffer.from('x'.repeat(5000)))
  const lines = screen.lastLines()
  expect(lines.length).toBe(20)
  expect(lines[0]).toBe('line 13')
  expect(lines.at(-2)).toBe('  OK   ready ä\tend')
  expect(lines.at(-1)).toBe('x'.repeat(300))
})

test('however much is said, only the end of it is kept', () => {
  const screen = new Screen()
  for (let line = 1; line <= 100_000; line++) screen.add(Buffer.from(`line ${line}\n`))
  expect(screen.lastLines().at(0)).toBe('line 99981')
})

test('knows when the kernel has given up, also when that is said in pieces', () => {
  const screen = new Screen()
  screen.add(Buffer.from('[ 2.1] Kernel panic - not '))
  expect(screen.hasPanicked).toBe(false)
  screen.add(Buffer.from('syncing: VFS: Unable to mount root fs'))
  expect(screen.hasPanicked).toBe(true)
})
