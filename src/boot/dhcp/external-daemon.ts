import { readFile } from 'node:fs/promises'
import type { Daemon } from './daemon.ts'
import type { DaemonState } from './desired.ts'

/** The process in a pid file, if that is a dnsmasq that runs with this configuration. */
export async function runningDnsmasq(pidFile: string, config: string): Promise<number | undefined> {
  const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''))
  if (!Number.isSafeInteger(pid) || pid <= 1) return undefined
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  return words.includes(`--conf-file=${config}`) ? pid : undefined
}

/**
 * A dnsmasq that runs as a unit of systemd's and outlives us: we write its files, and tell it to look at them. A new
 * configuration means that it ends; systemd starts it again.
 */
export class ExternalDaemon implements Daemon {
  readonly #name: string
  readonly #config: string
  readonly #pidFile: string
  #pid: number | undefined

  constructor(options: { readonly name: string; readonly config: string; readonly pidFile: string }) {
    this.#name = options.name
    this.#config = options.config
    this.#pidFile = options.pidFile
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

  restart(): Promise<void> {
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
    this.#pid = await runningDnsmasq(this.#pidFile, this.#config)
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
