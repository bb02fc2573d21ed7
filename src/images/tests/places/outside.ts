import { exec } from '../../../lib/exec.ts'
import type { SubjectOptions, SubjectResult } from '../subject.ts'
import { capture } from './capture.ts'
import { withEnvironment } from './environment.ts'

export interface OutsideOptions extends Pick<SubjectOptions, 'timeout' | 'keep'> {
  readonly tree: string
  readonly tests: string
  /** The first process of the container, where one runs. */
  readonly pid?: number
  /** A directory for scratch. */
  readonly work: string
  readonly signal: AbortSignal
}

/**
 * Runs a program of this machine that looks at the image from outside: the tree is MUSTER_ROOT, the tests MUSTER_TESTS
 * and its working directory, and it can change neither of them.
 */
export async function runOutside(
  argv: readonly string[],
  { tree, tests, pid, work, signal, ...limits }: OutsideOptions,
): Promise<SubjectResult> {
  const env = { MUSTER_ROOT: tree, MUSTER_TESTS: tests, ...(pid !== undefined && { MUSTER_PID: String(pid) }) }
  const alone = ['setpriv', '--pdeathsig=KILL', 'unshare', '--mount', '--propagation=private', 'sh', '-euc', READ_ONLY]
  const command = [...withEnvironment(env), ...alone, 'sh', tree, tests, ...argv]
  return capture(
    ({ stderr, ...wires }) =>
      // Both the shell and what it starts end with us.
      exec('setpriv', ['--pdeathsig=KILL', 'sh', '-c', START, stderr, ...command], {
        ...wires,
        timeout: 0,
        group: true,
        cwd: '/',
      }),
    { ...limits, dir: work, signal },
  )
}

const START = '"$@" 2>"$0"; exit $?'

const READ_ONLY = `
for dir in "$1" "$2"; do
  mount --bind "$dir" "$dir"
  mount -o remount,bind,ro "$dir"
done
cd "$2"
shift 2
exec "$@"`
