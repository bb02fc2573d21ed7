import { readFile, readdir } from 'node:fs/promises'
import type { Daemon } from './daemon.ts'
import type { DaemonState } from './desired.ts'

/** The dnsmasq that runs with this configuration. */
export async function runningDnsmasq(config: string): Promise<number | undefined> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  for (const pid of pids) {
    // It may have ended since.
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
    if (words[0]?.endsWith('dnsmasq') === true && words.includes(`--conf-file=${config}`)) return Number(pid)
  }
  return undefined
}

/**
 * A dnsmasq that runs as a unit of systemd's and outlives us: we write its files, and tell it to look at them. Where it
 * has to start anew it ends, and systemd starts it again.
 */
export class ExternalDaemon implements Daemon {
  readonly #name: string
  readonly #config: string
  #pid: number | undefined

  constructor(options: { readonly name: string; readonly config: string }) {
    this.#name = options.name
    this.#config = options.config
  }

  /** As it was when we last had to do with it. */
  get state(): DaemonState {
    return {
      name: this.#name,
      running: this.#pid !== undefined,
      ...(this.#pid !== undefined && { pid: this.#pid }),
      restarts: 0,
      ...(this.#pid === undefined && { lastError: `no dnsmasq runs with ${this.#config}` }),
    }
  }

  renew(): Promise<void> {
    return this.#signal('SIGTERM')
  }

  reload(): Promise<void> {
    return this.#signal('SIGHUP')
  }

  async notices(_file: string, place: () => Promise<void>): Promise<void> {
    await place()
    await this.#signal(0)
  }

  async #signal(signal: NodeJS.Signals | 0): Promise<void> {
    this.#pid = await runningDnsmasq(this.#config)
    if (this.#pid === undefined) return
    try {
      process.kill(this.#pid, signal)
    } catch {
      // It has just ended, and reads everything when it starts.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It is not ours to end.
  }
}
