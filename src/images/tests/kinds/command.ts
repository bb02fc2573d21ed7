import { TIMED_OUT } from '../subject.ts'
import { Output, Unknown } from '../found.ts'
import { type Observe, gather, targetOf, timeoutOf } from './look.ts'

const TEN_SECONDS = 10_000

export const observeCommand: Observe = async (subject, check) => {
  const timeout = timeoutOf(check, TEN_SECONDS)
  const began = performance.now()
  const { exitCode, stdout, stderr } = await subject.run(['/bin/sh', '-c', targetOf(check)], { timeout })
  // A program may give 124 itself; not after just this long.
  const late = exitCode === TIMED_OUT && performance.now() - began >= timeout - 10
  const tooLong = new Unknown(`took longer than ${timeout} ms`)
  return gather(check, {
    'exit-status': late ? tooLong : exitCode,
    stdout: late ? tooLong : new Output(stdout),
    stderr: late ? tooLong : new Output(stderr),
  })
}
