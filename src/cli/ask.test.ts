import { describe, expect, it, test, vi } from 'vitest'
import { confirm, patiently } from './ask.ts'
import { memoryIo } from './testing.ts'

describe('confirm', () => {
  const QUESTION = 'apply to 4 nodes?'

  it('asks nothing when it was said on the command line', async () => {
    const io = memoryIo({ terminal: ['stdin', 'stdout', 'stderr'] })
    await confirm(io, QUESTION, true)
    expect(io.said).toEqual({ stdout: '', stderr: '' })
  })

  it.each([undefined, false])('never waits off a terminal (--yes: %s)', async yes => {
    const io = memoryIo({ input: 'y\n', terminal: ['stdout', 'stderr'] })
    await expect(confirm(io, QUESTION, yes)).rejects.toMatchObject({
      code: 'CONFIRMATION_NEEDED',
      message: 'not confirmed: apply to 4 nodes?',
      hint: 'not a terminal: say --yes to go on',
    })
    expect(io.said).toEqual({ stdout: '', stderr: '' })
  })

  const answered = async (keys: string): Promise<{ said: string; error: unknown }> => {
    const io = memoryIo({ terminal: ['stdin'] })
    const asked = confirm(io, QUESTION, undefined)
    io.type(keys)
    const error: unknown = await asked.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    return { said: io.said.stderr, error }
  }

  test.each(['y\n', 'Y\n', 'yes\n', ' yes \n', 'YES\n'])('%j goes on', async keys => {
    expect(await answered(keys)).toEqual({ said: 'apply to 4 nodes? [y/N] ', error: undefined })
  })

  test.each(['n\n', '\n', 'no\n', 'yeah\n', 'yn\n', 'j\n'])('%j does not', async keys => {
    const { error } = await answered(keys)
    expect(error).toMatchObject({ code: 'ABORTED', message: 'not confirmed', hint: 'nothing was changed' })
  })

  it('gives up when it is interrupted', async () => {
    const io = memoryIo({ terminal: ['stdin'] })
    const asked = confirm(io, QUESTION, undefined)
    io.interrupt()
    await expect(asked).rejects.toThrow('aborted')
  })
})

const GONE = '\r\x1b[K'

const slowly = async (terminal: readonly 'stderr'[]): Promise<string> => {
  vi.useFakeTimers()
  try {
    const io = memoryIo({ terminal })
    const work = patiently(io, 'comparing', new Promise<void>(done => setTimeout(done, 3200)))
    await vi.advanceTimersByTimeAsync(3200)
    await work
    return io.said.stderr
  } finally {
    vi.useRealTimers()
  }
}

describe('patiently', () => {
  it('says nothing about what is quick', async () => {
    const io = memoryIo({ terminal: ['stderr'] })
    expect(await patiently(io, 'comparing', Promise.resolve(3))).toBe(3)
    expect(io.said.stderr).toBe('')
  })

  it('tells what it waits for, and takes it away again', async () => {
    expect(await slowly(['stderr'])).toBe(`${'\rcomparing … 2 s'.repeat(2)}${'\rcomparing … 3 s'.repeat(2)}${GONE}`)
  })

  it('never writes so into a file', async () => {
    expect(await slowly([])).toBe('')
  })

  it('takes its word away when the work fails, too', async () => {
    vi.useFakeTimers()
    try {
      const io = memoryIo({ terminal: ['stderr'] })
      const fails = new Promise<never>((_, fail) => setTimeout(() => fail(new Error('gone')), 2600))
      const [failed] = await Promise.all([
        patiently(io, 'applying', fails).catch((error: unknown) => error),
        vi.advanceTimersByTimeAsync(2600),
      ])
      expect(failed).toEqual(new Error('gone'))
      expect(io.said.stderr.endsWith(GONE)).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })
})
