/** Muster as a process: what these tests start, watch and kill. */
// oxlint-disable-next-line no-restricted-imports -- the test needs the process itself: its signals, its exit status, its end
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Ask, type Reply, request } from '../../src/api/testing.ts'
import { isolateGit } from '../../src/control/testing.ts'
import { reaped } from '../reaped.ts'

export const MUSTER = fileURLToPath(new URL('../../bin/muster', import.meta.url))

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

export interface Muster extends AsyncDisposable {
  readonly pid: number
  readonly url: string
  /** Of its unix socket. */
  readonly socket: string
  /** What it has logged so far. */
  readonly output: { readonly stdout: string; readonly stderr: string }
  readonly exit: Promise<Exit>
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Exit>
  /** As root, through the unix socket. */
  root(method: string, path: string, body?: unknown): Promise<Reply>
  /** Through TCP. */
  ask(method: string, path: string, ask?: Ask): Promise<Reply>
  /** `muster …` on the command line, talking to this server. */
  cli(...args: string[]): Promise<Ended>
}

export interface MusterOptions {
  readonly site: string
  readonly data: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Runs `muster serve` until it says that it is ready. */
export async function startMuster({ site, data, args = [], env = {} }: MusterOptions): Promise<Muster> {
  const all = ['serve', '--site', site, '--data', data, '--listen', '127.0.0.1:0', ...args]
  const child = start(all, env)
  const output = collect(child)
  const exit = once(child, 'close').then(([code, signal]: (number | string | null)[]) => ({ code, signal }) as Exit)
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', () => {
      const ready = /"url":"([^"]+)".*"msg":"ready"/.exec(output.stdout)
      if (ready?.[1] !== undefined) resolve(ready[1])
    })
    void exit.then(() => reject(new Error(`muster serve ended before it was ready: ${output.stderr}${output.stdout}`)))
  })
  const socket = join(data, 'muster.sock')
  const { hostname: host, port } = new URL(url)
  return {
    pid: child.pid ?? 0,
    url,
    socket,
    output,
    exit,
    async end(signal) {
      child.kill(signal)
      return exit
    },
    root: (method, path, body) => request({ socketPath: socket }, method, path, { body }),
    ask: (method, path, ask) => request({ host, port }, method, path, ask),
    cli: (...words) => muster(words, { MUSTER_SERVER: socket }),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exit
    },
  }
}

export interface Ended extends Exit {
  readonly stdout: string
  readonly stderr: string
}

/** Runs `muster …` to its end. */
export async function muster(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const child = start(args, env)
  const output = collect(child)
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { code, signal, ...output }
}

function start(args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  isolateGit()
  const { MUSTER_SERVER: _server, MUSTER_TOKEN: _token, NOTIFY_SOCKET: _notify, ...inherited } = process.env
  return reaped(spawn(MUSTER, args, { env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }))
}

export function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  return output
}

export interface Folder extends AsyncDisposable {
  readonly path: string
}

export async function folder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'muster-test-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Bytes of memory that a process has in use, and the most it ever had. */
export async function memoryOf(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024
  return { now: field('VmRSS'), most: field('VmHWM') }
}
