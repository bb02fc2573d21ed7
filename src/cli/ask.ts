import { createInterface } from 'node:readline/promises'
import { MusterError, messageOf } from '../lib/errors.ts'
import type { Io } from './io.ts'

/** Goes on only with a yes: the flag, or an answer at the terminal. Off a terminal it never waits for one. */
export async function confirm(io: Io, question: string, yes: boolean | undefined): Promise<void> {
  if (yes === true) return
  if (io.stdin.isTTY !== true) throw new MusterError('CONFIRMATION_NEEDED', `not confirmed: ${question}`)
  const terminal = createInterface({ input: io.stdin, output: io.stderr })
  try {
    const answer = await answerOf(io, terminal.question(`${question} [y/N] `, { signal: io.interrupted }))
    if (!/^y(es)?$/i.test(answer.trim())) throw new MusterError('ABORTED', 'not confirmed')
  } finally {
    terminal.close()
  }
}

/** Ctrl-D, the end of input, is no answer; Ctrl-C goes on as what it is. */
export const answerOf = (io: Io, asked: Promise<string>): Promise<string> =>
  asked.catch((error: unknown) => {
    io.stderr.write('\n')
    if (messageOf(error).includes('Ctrl+D')) return ''
    throw error
  })

/** Tells what is being waited for, once it takes longer than people like to wait without a word. */
export async function patiently<Result>(io: Io, doing: string, work: Promise<Result>): Promise<Result> {
  if (io.stderr.isTTY !== true) return work
  const started = performance.now()
  let shown = false
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - started) / 1000)
    if (seconds < 2) return
    shown = true
    io.stderr.write(`\r${doing} … ${seconds} s`)
  }, 500)
  try {
    return await work
  } finally {
    clearInterval(timer)
    if (shown) io.stderr.write('\r\x1b[K')
  }
}
