import { existsSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { execa, type Options } from 'execa'
import { MusterError } from './errors.ts'

/**
 * The one door to other programs: arguments as an array (never a shell), always a time-out, and a failure that shows
 * the command to paste and the end of what it printed.
 */
export interface ExecOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string | Uint8Array
  readonly signal?: AbortSignal
  /** Milliseconds; a minute unless said otherwise, 0 for as long as it takes. */
  readonly timeout?: number
  /** Exit codes that are answers rather than failures. */
  readonly allow?: readonly number[]
  /** The program talks to the person at the terminal (an editor). */
  readonly interactive?: boolean
  /** Called with what it prints, as it prints it, instead of keeping it. */
  readonly onOutput?: (chunk: Buffer) => void
  /** It gets a process group of its own; when it is ended by a signal, so is whatever it left behind in there. */
  readonly group?: boolean
  /** Where its standard output flows, however much it is. */
  readonly stdoutTo?: Writable
}

export interface ExecResult {
  readonly stdout: Buffer
  readonly exitCode: number
}

const MINUTE = 60_000
const TAIL_LINES = 15
const TAIL_BYTES = 8192

export async function exec(command: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
  options.signal?.throwIfAborted()
  const settings = {
    reject: false,
    encoding: 'buffer',
    stripFinalNewline: false,
    maxBuffer: 512 * 1024 * 1024,
    timeout: options.interactive ? 0 : (options.timeout ?? MINUTE),
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    ...(options.env !== undefined && { env: { ...options.env } }),
    // Nobody is there to answer a question.
    ...(options.input !== undefined && { input: options.input }),
    ...(options.input === undefined && options.interactive !== true && { stdin: 'ignore' as const }),
    ...(options.signal !== undefined && { cancelSignal: options.signal }),
    ...(options.interactive === true && { stdio: 'inherit' as const }),
    ...(options.group === true && { detached: true }),
    ...(options.onOutput !== undefined && { all: true, buffer: false }),
    ...(options.stdoutTo !== undefined && { buffer: { stdout: false } }),
  } satisfies Options
  const child = execa(command, [...args], settings)
  let last = Buffer.alloc(0)
  child.all?.on('data', (chunk: Buffer) => {
    options.onOutput?.(chunk)
    last = Buffer.concat([last, chunk]).subarray(-TAIL_BYTES)
  })
  if (options.group === true) child.once('exit', (_, signal) => signal !== null && endGroup(child.pid))
  if (options.stdoutTo !== undefined) {
    child.stdout?.pipe(options.stdoutTo)
    // Nobody reads any more.
    options.stdoutTo.once('close', () => child.kill())
  }
  const result = await child
  const exitCode = result.exitCode ?? -1
  if (exitCode !== 0 && !options.allow?.includes(exitCode)) {
    throw new MusterError('EXEC_FAILED', `${quoteCommand(command, args)}: ${reasonOf(result, options.cwd)}`, {
      details: tail(text(last) || text(result.stderr) || text(result.stdout)),
    })
  }
  return { stdout: Buffer.from(result.stdout ?? new Uint8Array()), exitCode }
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // Nobody is left in it.
  }
}

/** The command as one would type it. */
export function quoteCommand(command: string, args: readonly string[]): string {
  return [command, ...args]
    .map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ')
}

interface Outcome {
  readonly timedOut: boolean
  readonly signal?: string | undefined
  readonly exitCode?: number | undefined
  readonly code?: string | undefined
}

function reasonOf(result: Outcome, cwd: string | undefined): string {
  // The same code where the directory it should run in is missing.
  if (result.code === 'ENOENT' && cwd !== undefined && !existsSync(cwd)) return `there is no directory ${cwd}`
  if (result.code === 'ENOENT') return 'is not installed'
  if (result.timedOut) return 'took too long and was stopped'
  if (result.signal !== undefined) return `was ended by ${result.signal}`
  return `failed with exit status ${result.exitCode ?? 'unknown'}`
}

const text = (bytes: unknown): string =>
  bytes instanceof Uint8Array && bytes.length > 0 ? Buffer.from(bytes).toString('utf8') : ''

const tail = (output: string): string[] =>
  output
    .trimEnd()
    .split('\n')
    .filter(line => line !== '')
    .slice(-TAIL_LINES)
