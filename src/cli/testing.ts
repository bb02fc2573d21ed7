/** The world outside for tests: streams in memory, an environment of its own. */
import { PassThrough, Readable, Writable } from 'node:stream'
import type { Io } from './io.ts'
import { runCli } from './run.ts'

export interface World {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** What is piped in; nothing unless given. */
  readonly input?: string
  /** Which streams are a terminal. */
  readonly terminal?: readonly ('stdin' | 'stdout' | 'stderr')[]
}

export interface MemoryIo extends Io {
  /** All that was written so far. */
  readonly said: { stdout: string; stderr: string }
  type(keys: string): void
  interrupt(): void
}

export function memoryIo({ env = {}, cwd = '/', input, terminal = [] }: World = {}): MemoryIo {
  const said = { stdout: '', stderr: '' }
  const keyboard = new PassThrough()
  const controller = new AbortController()
  const sink = (name: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write(chunk: Buffer, _, done) {
        said[name] += chunk.toString('utf8')
        done()
      },
    })
  const stdin = terminal.includes('stdin') ? keyboard : Readable.from(input === undefined ? [] : [Buffer.from(input)])
  return {
    env,
    cwd,
    stdin: Object.assign(stdin, { isTTY: terminal.includes('stdin') }),
    stdout: Object.assign(sink('stdout'), { isTTY: terminal.includes('stdout') }),
    stderr: Object.assign(sink('stderr'), { isTTY: terminal.includes('stderr') }),
    interrupted: controller.signal,
    said,
    type: keys => void keyboard.write(keys),
    interrupt: () => controller.abort(),
  }
}

export interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** One command line in this process. */
export async function run(argv: readonly string[], world: World = {}): Promise<Ran> {
  const io = memoryIo(world)
  const status = await runCli(argv, io)
  return { status, ...io.said }
}
