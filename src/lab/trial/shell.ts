import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { withEnvironment } from '../../images/tests/places/environment.ts'
import type { SubjectOptions, SubjectResult } from '../../images/tests/subject.ts'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { Mutex } from '../../lib/mutex.ts'
import { Incoming } from './incoming.ts'

export interface ShellOptions {
  readonly signal: AbortSignal
  /** Milliseconds that nothing may come, beside what a command takes; a minute unless said. */
  readonly patience?: number
  /** The error that says so of the machine. */
  readonly trouble?: (what: string) => MusterError
}

const LOOP = new URL('loop.sh', import.meta.url)
const PATIENCE = 60_000
const TIMEOUT = 10_000
const MIB = 1024 * 1024
const LONGEST_LINE = 100
/** A prompt, and our own words in the echo of the terminal. */
const LONGEST_GREETING = 4096
const READY = 'muster-trial-ready'

/**
 * A root shell at the other end of a serial line, which runs one command after another. The first line it is typed turns
 * it into loop.sh, which says what goes over the line.
 *
 *     # exec sh -c 'stty raw -echo && …          a terminal until here
 *     ← muster-trial-ready                       → (the text of loop.sh)
 *     ← next                                     → 57 0 10 1048576
 *     ← more 57                                  → cd '/' && exec 'env' '-i' … 'uname' '-r'
 *     ← done 0 21 0 6.1.0-30-cloud-amd64
 */
export class SerialShell {
  readonly #socket: Socket
  readonly #incoming: Incoming
  readonly #signal: AbortSignal
  readonly #patience: number
  readonly #trouble: (what: string) => MusterError
  readonly #mutex = new Mutex()
  /** After a word that was not understood nobody knows what the next one means. */
  #broken: MusterError | undefined

  /** From before it says its first word. */
  constructor(socket: Socket, { signal, patience = PATIENCE, trouble = plainTrouble }: ShellOptions) {
    this.#socket = socket
    this.#incoming = new Incoming(socket)
    this.#signal = signal
    this.#patience = patience
    this.#trouble = trouble
    signal.addEventListener('abort', () => this.#incoming.end(new Error('nobody waits any more')), { once: true })
  }

  /** Turns the shell into one that takes commands; once, before the first. */
  open(): Promise<void> {
    return this.#guard(async () => {
      const loop = await readFile(LOOP)
      await this.#incoming.spoken(this.#patience)
      this.#incoming.keep()
      this.#socket.write(`${takeOver(loop.length)}\n`)
      // The prompt, or the line itself in the echo, may stand before it.
      while (!(await this.#incoming.line(LONGEST_GREETING, this.#patience)).endsWith(READY));
      this.#socket.write(loop)
    })
  }

  run(argv: readonly string[], options: SubjectOptions = {}): Promise<SubjectResult> {
    return this.#mutex.run(() => this.#guard(() => this.#run(argv, options)))
  }

  async #run(
    argv: readonly string[],
    { input = '', timeout = TIMEOUT, env, cwd = '/', keep = MIB }: SubjectOptions,
  ): Promise<SubjectResult> {
    const words = [...withEnvironment(env), ...argv]
    if ([cwd, ...words].some(word => word.includes('\0')))
      return { exitCode: 127, stdout: Buffer.alloc(0), stderr: Buffer.from('no command has a NUL in it\n') }
    const command = Buffer.from(`cd ${quoted(cwd)} && exec ${words.map(quoted).join(' ')}\n`)
    const given = Buffer.from(input)
    await this.#expect(/^next$/)
    this.#socket.write(`${command.length} ${given.length} ${timeout / 1000} ${keep}\n`)
    for (const bytes of [command, given]) await this.#send(bytes)
    const done = /^done (\d{1,3}) (\d{1,10}) (\d{1,10})$/
    const [, status, said, complained] = await this.#expect(done, timeout)
    const lengths = [Number(said), Number(complained)] as const
    if (lengths.some(length => length > keep)) throw new Error('it sends more than was asked for')
    const stdout = await this.#incoming.bytes(lengths[0], this.#patience)
    const stderr = await this.#incoming.bytes(lengths[1], this.#patience)
    return { exitCode: Number(status), stdout, stderr }
  }

  /** In pieces, each when it is asked for. */
  async #send(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const [, count] = await this.#expect(/^more ([1-9]\d{0,5})$/)
      this.#socket.write(bytes.subarray(at, at + Number(count)))
      at += Number(count)
    }
  }

  async #expect(what: RegExp, more = 0): Promise<RegExpExecArray> {
    const line = await this.#incoming.line(LONGEST_LINE, more + this.#patience)
    if (line === 'full') throw new Error('its /run has no room for what it is sent')
    const found = what.exec(line)
    if (found === null) throw new Error(`it says ${JSON.stringify(line)}, which is no answer`)
    return found
  }

  async #guard<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#signal.throwIfAborted()
    if (this.#broken !== undefined) throw this.#broken
    try {
      return await work()
    } catch (error) {
      this.#signal.throwIfAborted()
      this.#broken = this.#trouble(`does not answer on its second serial line: ${messageOf(error)}`)
      throw this.#broken
    }
  }
}

const plainTrouble = (what: string): MusterError => new MusterError('EXEC_FAILED', `the machine ${what}`)

/** One line, for whichever shell it is; without what an interactive one would take for something else (!). */
const takeOver = (bytes: number): string =>
  `exec sh -c 'stty raw -echo && echo ${READY.replace('-', '""-')} && eval "$(dd bs=${bytes} count=1 iflag=fullblock 2>/dev/null)"'`

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`
