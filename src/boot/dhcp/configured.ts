import { readFile } from 'node:fs/promises'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import type { Daemon } from './daemon.ts'
import type { DaemonState } from './desired.ts'
import { type Staging, missing } from './lists.ts'

/** A dnsmasq and its configuration, which is only ever one that it accepts. */
export class ConfiguredDaemon implements AsyncDisposable {
  readonly #daemon: Daemon
  readonly #file: string
  readonly #lists: string
  readonly #staging: Staging
  #config: string | undefined
  /** It did not take the last of what it was given. */
  #isBehind = false

  /** `lists` is the file that it reads last when it starts. */
  constructor(daemon: Daemon, options: { readonly file: string; readonly lists: string; readonly staging: Staging }) {
    this.#daemon = daemon
    this.#file = options.file
    this.#lists = options.lists
    this.#staging = options.staging
  }

  get state(): DaemonState {
    return this.#daemon.state
  }

  /** What an earlier one of us left. */
  async open(): Promise<void> {
    this.#config = await readFile(this.#file, 'utf8').catch(missing)
  }

  /**
   * With what is there, if anything is. That it fails shows in its state, and in the next attempt to give it something.
   */
  async start(): Promise<void> {
    if (this.#config !== undefined) await this.#attempt(() => this.#daemon.renew(this.#lists)).catch(() => {})
  }

  /** On a copy: what it rejects never becomes its configuration. */
  async check(config: string): Promise<void> {
    if (config === this.#config) return
    const draft = await this.#staging.draft(this.#file, config)
    await exec('dnsmasq', ['--test', `--conf-file=${draft}`]).catch((error: unknown) => {
      if (!(error instanceof MusterError)) throw error
      throw new MusterError('EXEC_FAILED', 'dnsmasq rejects the configuration; it goes on with the one it has', {
        details: error.details,
        hint: `what it rejected: ${draft}`,
        cause: error,
      })
    })
  }

  /** Whether it has to start anew to be as it should. */
  isBehind(config: string): boolean {
    return this.#isBehind || config !== this.#config
  }

  /** One that has read the configuration and all lists takes over; a configuration it cannot run with is taken back. */
  async renew(config: string): Promise<void> {
    const before = this.#config
    if (config !== before) await this.#staging.place(this.#file, config)
    this.#config = config
    try {
      await this.#attempt(() => this.#daemon.renew(this.#lists))
    } catch (error) {
      if (before !== undefined && before !== config) await this.#staging.place(this.#file, before)
      this.#config = before
      throw error
    }
  }

  /** A change that it takes while it runs. */
  async update(work: (daemon: Daemon) => Promise<void>): Promise<void> {
    await this.#attempt(() => work(this.#daemon))
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    this.#isBehind = true
    await work()
    this.#isBehind = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#daemon[Symbol.asyncDispose]()
  }
}
