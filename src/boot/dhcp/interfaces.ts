import { existsSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import type { Logger } from 'pino'
import { messageOf } from '../../lib/errors.ts'
import { exec, quoteCommand } from '../../lib/exec.ts'
import type { NetworkPlan } from './networks.ts'

/** The interface that bears an address, if one does now. */
export function interfaceOf(address: string): string | undefined {
  return Object.entries(networkInterfaces()).find(([, list]) => list?.some(one => one.address === address))?.[0]
}

/** Those of our addresses, that of the first one first. */
export const interfacesOf = (own: readonly string[]): string[] => [
  ...new Set(own.flatMap(address => interfaceOf(address) ?? [])),
]

/** Whether this machine knows IPv6 at all. */
export const hasIpv6 = (): boolean => existsSync('/proc/net/if_inet6')

/**
 * Our address in each prefix we advertise: without one on the interface, dnsmasq does not advertise it. They go when we
 * go, except where dnsmasq stays.
 */
export class RouterAddresses {
  readonly #logger: Logger
  readonly #held = new Map<string, string>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  async hold(networks: readonly NetworkPlan[]): Promise<void> {
    const wanted = new Map<string, string>(
      networks.flatMap(({ advertised, own }) => {
        const name = interfaceOf(own)
        return advertised === undefined || name === undefined
          ? []
          : [[`${advertised.address}/${advertised.bits}`, name] as const]
      }),
    )
    for (const [address, name] of this.#held) if (wanted.get(address) !== name) await this.#letGo(address, name)
    for (const [address, name] of wanted) if (!this.#held.has(address)) await this.#take(address, name)
  }

  async #take(address: string, name: string): Promise<void> {
    // Nobody else derives this address: there is no duplicate to look for, and it is of use at once.
    const args = ['-6', 'address', 'replace', address, 'dev', name, 'nodad']
    await exec('ip', args).then(
      () => void this.#held.set(address, name),
      (error: unknown) =>
        this.#logger.warn(
          { reason: messageOf(error), command: quoteCommand('ip', args) },
          'no IPv6 prefix is advertised, so iPXE waits for one: this command would help',
        ),
    )
  }

  async #letGo(address: string, name: string): Promise<void> {
    this.#held.delete(address)
    // The interface may be gone, and its addresses with it.
    await exec('ip', ['-6', 'address', 'delete', address, 'dev', name]).catch(() => {})
  }

  async letAllGo(): Promise<void> {
    for (const [address, name] of this.#held) await this.#letGo(address, name)
  }
}
