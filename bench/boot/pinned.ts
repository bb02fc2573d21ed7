// oxlint-disable-next-line no-restricted-imports -- programs that are asked things while they are measured
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

interface Answer {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

/** What a program of the bench can be asked: by name, with one value, answered by another. */
export type Skills = Readonly<Record<string, (value: never) => unknown>>
type Question<Some extends Skills, Name extends keyof Some> = Parameters<Some[Name]>[0]
type Reply<Some extends Skills, Name extends keyof Some> = Awaited<ReturnType<Some[Name]>>

/** The two cores of the smallest machine we promise anything for: who is measured, and who asks. */
export const SERVER_CORE = 0
export const LOAD_CORE = 1
/** As bin/muster starts a server. */
const SERVERS = new Set(['server', 'plain', 'files'])
const SERVE = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=4', '--expose-gc']

/** How a command is started where it is to live. */
export type Within = (command: string, args: readonly string[]) => [string, string[]]
export const HERE: Within = (command, args) => [command, [...args]]

/** A program of the bench in a process of its own, with all its threads on one core. */
export class Pinned<Some extends Skills> implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #asked = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (answer: Answer) => this.#waiting.get(answer.id)?.(answer))
    child.once('exit', status => {
      for (const [id, tell] of this.#waiting) tell({ id, error: `the program ended (${status})` })
    })
  }

  static async start<Some extends Skills>(name: string, core: number, within: Within = HERE): Promise<Pinned<Some>> {
    const file = new URL(`programs/${name}.ts`, import.meta.url).pathname
    const flags = SERVERS.has(name) ? SERVE : []
    const node = ['--cpu-list', `${core}`, process.execPath, ...process.execArgv, ...flags, file]
    const child = spawn(...within('taskset', node), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true,
    })
    await once(child, 'spawn')
    return new Pinned(child)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async ask<Name extends keyof Some & string>(
    name: Name,
    ...[value]: undefined extends Question<Some, Name> ? [] : [Question<Some, Name>]
  ): Promise<Reply<Some, Name>> {
    const id = ++this.#asked
    const answer = await new Promise<Answer>(resolve => {
      this.#waiting.set(id, resolve)
      this.#child.send({ id, name, value })
    })
    this.#waiting.delete(id)
    if (answer.error !== undefined) throw new Error(`${name}: ${answer.error}`)
    return answer.value as Reply<Some, Name>
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return
    const ended = once(this.#child, 'exit')
    // It ends by itself; if it does not, it has nothing to lose.
    this.#child.disconnect()
    const patience = setTimeout(() => this.#child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(patience)
  }
}
