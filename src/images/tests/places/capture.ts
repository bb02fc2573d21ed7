import type { ExecResult } from '../../../lib/exec.ts'
import { type SubjectOptions, type SubjectResult, TIMED_OUT } from '../subject.ts'
import { openPipe } from './pipe.ts'

/** What a command is started with: its standard error goes to a named pipe, for `exec` only shows standard output. */
export interface Wires {
  readonly stderr: string
  readonly signal: AbortSignal
  readonly onOutput: (chunk: Buffer) => void
  readonly allow: readonly number[]
}

export interface CaptureOptions extends Pick<SubjectOptions, 'timeout' | 'keep'> {
  /** For the pipe. */
  readonly dir: string
  readonly signal: AbortSignal
  /** Ends what the command has left behind. */
  readonly onTimeout?: () => Promise<void>
}

const EVERY_EXIT_CODE = Array.from({ length: 256 }, (_, code) => code)
const MIB = 1024 * 1024
const TIMEOUT = 10_000

/** Runs a command to its end or its time-out, and keeps the beginning of what it says. */
export async function capture(
  start: (wires: Wires) => Promise<ExecResult>,
  { dir, signal, timeout = TIMEOUT, keep = MIB, onTimeout }: CaptureOptions,
): Promise<SubjectResult> {
  signal.throwIfAborted()
  const [stdout, stderr] = [new Kept(keep), new Kept(keep)]
  await using pipe = await openPipe(dir, chunk => stderr.add(chunk))
  const limit = AbortSignal.timeout(timeout)
  const stop = AbortSignal.any([signal, limit])
  let swept: Promise<void> | undefined
  const sweep = (): void => void (swept = onTimeout?.())
  limit.addEventListener('abort', sweep, { once: true })
  let exitCode: number
  try {
    const wires = { stderr: pipe.path, signal: stop, onOutput: (chunk: Buffer) => stdout.add(chunk) }
    exitCode = (await start({ ...wires, allow: EVERY_EXIT_CODE })).exitCode
  } catch (error) {
    signal.throwIfAborted()
    if (!limit.aborted) throw error
    exitCode = TIMED_OUT
  }
  await pipe.finished(stop)
  await swept
  return { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes() }
}

/** The first so many bytes. */
class Kept {
  readonly #chunks: Buffer[] = []
  #room: number

  constructor(limit: number) {
    this.#room = limit
  }

  add(chunk: Buffer): void {
    if (this.#room === 0) return
    const part = chunk.subarray(0, this.#room)
    this.#room -= part.length
    this.#chunks.push(part)
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
