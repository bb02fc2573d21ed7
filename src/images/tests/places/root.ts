import { randomUUID } from 'node:crypto'
import { lstat, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../../lib/errors.ts'
import { Mutex } from '../../../lib/mutex.ts'
import { inRoot } from '../../build/sandbox.ts'
import { type OpenSubject, type SubjectOptions, type SubjectResult, TESTS_INSIDE } from '../subject.ts'
import { capture } from './capture.ts'

export interface RootOptions {
  /** An empty directory, on a file system that an overlay can write to. */
  readonly work: string
  readonly signal: AbortSignal
  /** The folder of the tests, to be seen inside. */
  readonly tests?: string
}

/**
 * The plain tree, nothing of it started: every command runs in a sandbox of its own, without a network. What one
 * command writes the next one finds, except below /tmp and /run; the tree itself never changes.
 */
export async function openRoot(tree: string, { work, signal, tests }: RootOptions): Promise<OpenSubject> {
  if (!(await hasShell(tree)))
    throw new MusterError('IMAGE_INCOMPLETE', 'the root has no /bin/sh, and its tests look at it through a shell', {
      hint: 'add a shell to its packages: dash, bash or busybox',
    })
  const [mountPoint, upper] = [join(work, 'root'), join(work, 'upper')]
  for (const dir of [mountPoint, upper]) await mkdir(dir)
  // Two mounts of one upper directory at the same time would not see each other's files.
  const mutex = new Mutex()

  const once = async (argv: readonly string[], options: SubjectOptions): Promise<SubjectResult> => {
    // An overlay that was mounted without syncing wants another work directory the next time.
    const scratch = join(work, randomUUID())
    await mkdir(join(scratch, 'overlay'), { recursive: true })
    const input = options.input === undefined ? undefined : join(scratch, 'input')
    if (input !== undefined) await writeFile(input, options.input ?? '')
    const script = `${input === undefined ? '' : `exec <${INPUT}; `}${START}`
    try {
      return await capture(
        wires =>
          inRoot(
            { layers: [tree], upper, work: join(scratch, 'overlay'), mountPoint },
            ['/bin/sh', '-c', script, 'sh', options.cwd ?? '/', ...argv],
            {
              signal: wires.signal,
              allow: wires.allow,
              onOutput: wires.onOutput,
              env: options.env ?? {},
              writable: { [STDERR]: wires.stderr },
              readable: {
                ...(input !== undefined && { [INPUT]: input }),
                ...(tests !== undefined && { [TESTS_INSIDE]: tests }),
              },
            },
          ),
        { ...options, dir: scratch, signal },
      )
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  }

  const subject: OpenSubject = {
    place: 'root',
    run: (argv, options = {}) => mutex.run(() => once(argv, options)),
    // Nothing goes on between two commands.
    [Symbol.asyncDispose]: async () => {
      for (const dir of [mountPoint, upper]) await rm(dir, { recursive: true, force: true })
    },
  }
  await mustStart(subject)
  return subject
}

const INPUT = '/run/muster/input'
const STDERR = '/run/muster/stderr'
const START = `exec 2>${STDERR}; cd "$1" || exit; shift; exec "$@"`

/** Before anybody takes an exit code of the sandbox for one of the command's. */
async function mustStart(subject: OpenSubject): Promise<void> {
  const { exitCode, stdout, stderr } = await subject.run(['/bin/sh', '-c', ':'], { timeout: 60_000 })
  if (exitCode === 0) return
  throw new MusterError('EXEC_FAILED', 'nothing can be run in the root: its shell does not start', {
    details: Buffer.concat([stdout, stderr]).toString('utf8').trim().split('\n').slice(-15),
    hint: 'is it of the architecture of this machine, and whole?',
  })
}

/** Links in the tree lead anywhere, also out of it: only their names count. */
async function hasShell(tree: string): Promise<boolean> {
  const found = await Promise.allSettled(['bin/sh', 'usr/bin/sh'].map(path => lstat(join(tree, path))))
  return found.some(one => one.status === 'fulfilled')
}
