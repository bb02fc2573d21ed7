import { readFile } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { MusterError } from '../../../lib/errors.ts'
import { type ExecOptions, exec } from '../../../lib/exec.ts'
import type { Subject } from '../subject.ts'
import { type Facts, MOST_BYTES, parseFacts } from './facts.ts'
import { shown } from './learnt.ts'

const SCRIPT = fileURLToPath(new URL('facts.sh', import.meta.url))
/** Machines may be slow, and have a million files. */
const PATIENCE = 600_000

/** Of a plain tree, seen as its checks will see it. */
export async function factsOfSubject(subject: Subject, from: string): Promise<Facts> {
  const input = await readFile(SCRIPT)
  const keep = MOST_BYTES + 1
  const said = await subject.run(['/bin/sh', '-s', 'root'], { input, timeout: PATIENCE, keep })
  return parseFacts(said.stdout, from)
}

interface MachineOptions {
  readonly from: string
  /** Another file than ~/.ssh/config. */
  readonly sshConfig?: string
  readonly signal: AbortSignal
}

/** Nobody answers questions, and nothing of ours is forwarded there. */
const SSH = ['BatchMode=yes', 'ConnectTimeout=30', 'ForwardAgent=no', 'ForwardX11=no', 'ClearAllForwardings=yes']

/** Of a machine that runs: `destination` as ssh takes it, or nothing for this one. */
export function factsOfMachine(destination: string | undefined, options: MachineOptions): Promise<Facts> {
  const { sshConfig } = options
  if (destination === undefined) return factsFrom('sh', ['-s', 'running'], options)
  const settings = SSH.flatMap(setting => ['-o', setting])
  const config = sshConfig === undefined ? [] : ['-F', sshConfig]
  return factsFrom('ssh', ['-T', ...settings, ...config, '--', destination, 'sh', '-s', 'running'], options)
}

async function factsFrom(command: string, args: readonly string[], options: MachineOptions): Promise<Facts> {
  const { from, signal } = options
  const kept = new Kept()
  const settings: ExecOptions = {
    input: await readFile(SCRIPT),
    signal,
    timeout: PATIENCE,
    stdoutTo: kept,
    group: true,
  }
  try {
    await exec(command, args, settings)
  } catch (error) {
    signal.throwIfAborted()
    // It was stopped because it said too much; then that is what is told.
    if (!kept.isFull) throw harmless(error)
  }
  if (!kept.isFull) await finished(kept)
  return parseFacts(kept.bytes, from)
}

/** What the other side said goes to a terminal. */
const harmless = (error: unknown): unknown =>
  error instanceof MusterError
    ? new MusterError(error.code, error.message, { details: error.details.map(shown), hint: error.hint, cause: error })
    : error

/** No more than may be said; what wants to say more finds that nobody listens. */
class Kept extends Writable {
  readonly #chunks: Buffer[] = []
  #bytes = 0

  constructor() {
    // Closed only when it is full: ssh ends its output a moment before itself, and would be killed in between.
    super({ autoDestroy: false })
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    done()
    if (this.isFull) this.destroy()
  }

  get isFull(): boolean {
    return this.#bytes > MOST_BYTES
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
