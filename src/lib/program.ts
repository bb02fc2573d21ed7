// oxlint-disable-next-line no-restricted-imports -- the other door beside exec.ts: for what goes on running
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { MusterError } from './errors.ts'

/**
 * A program that goes on running beside us: a daemon we look after, a virtual machine, a server of a lab. What runs once and
 * ends is for `exec`.
 */
export interface ProgramOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Called with every line it prints, of either stream. */
  readonly onLine?: (line: string) => void
  /** Where both its streams go instead: the descriptor of an open file. */
  readonly outputTo?: number
  /** Descriptors it inherits as 3, 4 and so on: sockets it is to listen on. */
  readonly descriptors?: readonly number[]
  /** It outlives us, in a session of its own. */
  readonly detached?: boolean
}

export interface Program extends AsyncDisposable {
  readonly pid: number
  /** Exit status, or the signal that ended it; by then its last line was heard. */
  readonly ended: Promise<number | NodeJS.Signals>
  signal(signal: NodeJS.Signals): void
  /** Asks it to end, and insists after `patience` milliseconds. */
  stop(patience?: number): Promise<void>
}

const PATIENCE = 5000
/** What a program has left behind may hold its output for ever. */
const LAST_WORDS = 500

export async function startProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<Program> {
  const to = options.outputTo ?? (options.onLine === undefined ? 'ignore' : 'pipe')
  const child = spawn(command, [...args], {
    stdio: ['ignore', to, to, ...(options.descriptors ?? [])],
    detached: options.detached === true,
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    ...(options.env !== undefined && { env: { ...process.env, ...options.env } }),
  })
  const ended = new Promise<number | NodeJS.Signals>(resolve => {
    child.once('exit', (code, signal) => {
      const tell = (): void => resolve(code ?? signal ?? 0)
      child.once('close', tell)
      setTimeout(tell, LAST_WORDS).unref()
    })
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ENOENT'
          ? new MusterError('EXEC_FAILED', `${command}: is not installed`, { cause: error })
          : error,
      ),
    )
  })
  for (const stream of [child.stdout, child.stderr])
    if (stream !== null && options.onLine !== undefined) createInterface({ input: stream }).on('line', options.onLine)
  if (options.detached === true) child.unref()
  const stop = async (patience = PATIENCE): Promise<void> => {
    child.kill('SIGTERM')
    const insist = setTimeout(() => child.kill('SIGKILL'), patience)
    await ended
    clearTimeout(insist)
  }
  return {
    pid: child.pid ?? 0,
    ended,
    signal: signal => void child.kill(signal),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}
