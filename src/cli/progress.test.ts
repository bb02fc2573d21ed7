import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Progress } from './progress.ts'
import { type World, memoryIo } from './testing.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A progress with a clock that is set by hand, in seconds. */
function make(world: World, columns?: number) {
  const io = memoryIo(world)
  if (columns !== undefined) Object.assign(io.stderr, { columns })
  const clock = { seconds: 1000 }
  let log = ''
  const progress = new Progress(
    io,
    chunk => (log += chunk.toString()),
    () => clock.seconds * 1000,
  )
  return { io, progress, clock, log: () => log }
}

const TERMINAL: World = { terminal: ['stderr'] }
const CLEAR = '\r\u001B[K'
/** What is on the screen: what was cleared is not. */
const screen = (text: string): string =>
  text
    .split('\n')
    .map(line => line.split(CLEAR).at(-1))
    .join('\n')
const tick = (): unknown => vi.advanceTimersByTime(120)

describe('off a terminal', () => {
  test('one line per stage when it is done, under the name of its image', () => {
    const { io, progress, clock } = make({})
    progress.begin('base', 'packages')
    progress.output(Buffer.from('Unpacking bash\n'))
    clock.seconds += 12.34
    tick()
    progress.end('made')
    progress.begin('base', 'files')
    progress.end('cached')
    progress.begin('compute', 'run ldconfig')
    clock.seconds += 125
    progress.end('failed')
    expect(io.said).toEqual({
      stdout: '',
      stderr: `base
  packages                      12.3 s
  files                         cached
compute
  run ldconfig                  failed after 2 min 5 s
`,
    })
  })

  test('nothing moves', () => {
    const { io, progress } = make({})
    progress.begin('base', 'packages')
    const before = io.said.stderr
    progress.note('fetching 3 packages')
    vi.advanceTimersByTime(10_000)
    expect(io.said.stderr).toBe(before)
    expect(vi.getTimerCount()).toBe(0)
  })
})

test('everything goes to the log, as it was printed', () => {
  const { progress, clock, log } = make({})
  progress.begin('base', 'packages')
  progress.note('fetching 3 packages')
  progress.output(Buffer.from('Unpacking \u001B[1mbash\u001B[0m\r\n'))
  progress.output(Buffer.from('half'))
  progress.output(Buffer.from(' a line\n'))
  clock.seconds += 1
  progress.end('made')
  progress.begin('base', 'files')
  progress.end('cached')
  expect(log()).toBe(`=== base: packages
--- fetching 3 packages
Unpacking \u001B[1mbash\u001B[0m\r
half a line
=== base: packages: 1.0 s
=== base: files
=== base: files: cached
`)
})

test('a log is not needed', () => {
  const io = memoryIo()
  using progress = new Progress(io)
  progress.begin('base', 'files')
  progress.end('cached')
  expect(io.said.stderr).toBe('base\n  files                         cached\n')
})

describe('on a terminal', () => {
  test('one line that changes, with what is being done now', () => {
    const { io, progress, clock } = make(TERMINAL)
    progress.begin('base', 'packages')
    tick()
    expect(screen(io.said.stderr)).toBe('base\n  packages                      0.0 s  ')
    clock.seconds += 2
    progress.output(Buffer.from('Selecting bash\nUnpacking bash\n\n'))
    tick()
    expect(screen(io.said.stderr)).toBe('base\n  packages                      2.0 s  Unpacking bash')
    progress.note('fetched zsh')
    clock.seconds += 1
    tick()
    expect(screen(io.said.stderr)).toBe('base\n  packages                      3.0 s  fetched zsh')
    progress.end('made')
    expect(screen(io.said.stderr)).toBe('base\n  packages                      3.0 s\n')
    progress[Symbol.dispose]()
  })

  test('the next stage begins without what the one before printed last', () => {
    const { io, progress } = make(TERMINAL)
    progress.begin('base', 'packages')
    progress.output(Buffer.from('Unpacking bash\n'))
    progress.end('made')
    progress.begin('base', 'files')
    tick()
    expect(screen(io.said.stderr).split('\n').at(-1)).toBe('  files                         0.0 s  ')
    progress[Symbol.dispose]()
  })

  test('never longer than the terminal is wide, and never more than a line', () => {
    const { io, progress } = make(TERMINAL, 60)
    progress.begin('base', 'packages')
    progress.output(Buffer.from(`${'x'.repeat(500)}\n`))
    tick()
    const shown = screen(io.said.stderr).split('\n').at(-1)
    expect(shown).toBe(`  packages                      0.0 s  ${'x'.repeat(20)}`)
    progress[Symbol.dispose]()
  })

  test('what programs print cannot move the cursor', () => {
    const { io, progress } = make(TERMINAL)
    progress.begin('base', 'packages')
    progress.output(Buffer.from('10 %\r20 %\u001B[2J\u0007\tdone\u009B2J\n'))
    tick()
    expect(screen(io.said.stderr).split('\n').at(-1)).toBe('  packages                      0.0 s  20 % [2J done 2J')
    progress[Symbol.dispose]()
  })

  test('a program that prints nothing but empty lines changes nothing', () => {
    const { io, progress } = make(TERMINAL)
    progress.begin('base', 'packages')
    progress.note('waiting')
    progress.output(Buffer.from('\n \r\n'))
    tick()
    expect(screen(io.said.stderr).split('\n').at(-1)).toContain('waiting')
    progress[Symbol.dispose]()
  })

  test('nothing is shown before the first stage', () => {
    const { io, progress } = make(TERMINAL)
    tick()
    expect(io.said.stderr).toBe('')
    progress[Symbol.dispose]()
  })

  test('while somebody else has the terminal it is theirs', () => {
    const { io, progress } = make(TERMINAL)
    progress.begin('base', 'packages')
    progress.note('failing')
    tick()
    progress.pause()
    const before = io.said.stderr
    expect(screen(before)).toBe('base\n')
    vi.advanceTimersByTime(10_000)
    expect(io.said.stderr).toBe(before)
    progress[Symbol.dispose]()
  })

  test('what failed is told by its name and its own time when they give it back', () => {
    const { io, progress, clock } = make(TERMINAL)
    progress.begin('base', 'packages')
    clock.seconds += 3
    progress.pause()
    clock.seconds += 600
    progress.end('failed')
    expect(screen(io.said.stderr)).toBe('base\n  packages                      failed after 3.0 s\n')
    progress[Symbol.dispose]()
  })

  test('after a stage the last line it printed is gone', () => {
    const { io, progress } = make(TERMINAL)
    progress.begin('base', 'packages')
    progress.output(Buffer.from('Unpacking bash\n'))
    progress.end('made')
    tick()
    expect(screen(io.said.stderr)).toBe('base\n  packages                      0.0 s\n')
    progress[Symbol.dispose]()
  })

  test('at the end the line is gone and nothing moves any more', () => {
    const { io, progress } = make(TERMINAL)
    progress.begin('base', 'packages')
    tick()
    progress[Symbol.dispose]()
    expect(screen(io.said.stderr)).toBe('base\n')
    const before = io.said.stderr
    vi.advanceTimersByTime(10_000)
    expect([io.said.stderr, vi.getTimerCount()]).toEqual([before, 0])
  })
})
