import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import { type ExecOptions, type ExecResult, exec } from '../lib/exec.ts'
import { isErrno } from '../state/files.ts'
import { LAB_VARIABLE, type LabNames, NAMESPACES } from './names.ts'

/**
 * The wires of a lab: a namespace in which the server is at home, and one that is a switch, with a port for each node.
 *
 *     head ── lab0 ═══════ _head ── _bridge ── n001 ── QEMU
 *             10.77.0.1/16                 └── n002 ── QEMU
 *
 * Nothing of it is in the host's own namespace: neither an address nor an interface.
 */
export const HEAD_INTERFACE = 'lab0'
const HEAD_PORT = '_head'
const BRIDGE = '_bridge'

export interface Impairment {
  /** Of the packets in each direction: `10%`. */
  readonly loss?: string
  /** Of the packets to the node: `20ms`. */
  readonly delay?: string
}

export class LabNetwork {
  readonly #names: LabNames

  constructor(names: LabNames) {
    this.#names = names
  }

  async create(addresses: readonly { readonly cidr: string }[], ports: readonly string[]): Promise<void> {
    const { head, switch: bridge } = this.#names
    for (const namespace of [bridge, head]) await this.#run('ip', ['netns', 'add', namespace])
    await this.#silenceSwitch()
    await this.#batch('ip', bridge, [
      'link set dev lo up',
      // Frames pass at once: a firmware does not wait until a switch has learnt its neighbours.
      `link add name ${BRIDGE} type bridge forward_delay 0 stp_state 0 mcast_snooping 0`,
      `link set dev ${BRIDGE} up`,
      `link add name ${HEAD_PORT} type veth peer name ${HEAD_INTERFACE} netns ${head}`,
      `link set dev ${HEAD_PORT} master ${BRIDGE} up`,
      ...ports.flatMap(port => [`tuntap add dev ${port} mode tap`, `link set dev ${port} master ${BRIDGE} up`]),
    ])
    await this.#batch('ip', head, [
      'link set dev lo up',
      `link set dev ${HEAD_INTERFACE} up`,
      // Without duplicate address detection an IPv6 address can be listened on at once.
      ...addresses.map(({ cidr }) => `address add ${cidr} dev ${HEAD_INTERFACE}${cidr.includes(':') ? ' nodad' : ''}`),
    ])
  }

  /** Takes everything away that bears the lab's id; what runs in it must have ended. True where there was anything. */
  async destroy(): Promise<boolean> {
    const left = await this.leftovers()
    for (const namespace of left) await this.#run('ip', ['netns', 'delete', namespace], { allow: [1] })
    // Whoever was killed at the wrong instant leaves a name with nothing behind it.
    for (const namespace of left) await rm(join(NAMESPACES, namespace), { force: true })
    return left.length > 0
  }

  /** Names of its namespaces that exist now. */
  async leftovers(): Promise<string[]> {
    const names = await readdir(NAMESPACES).catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return []
      throw error
    })
    return names.filter(name => name === this.#names.head || name === this.#names.switch)
  }

  /** What the ports do to packets from now on; an empty impairment is none. */
  async impair(ports: readonly string[], { loss, delay }: Impairment): Promise<void> {
    const program = dropProgram(percent(loss ?? '0%'))
    const lines = ports.flatMap(port => [
      `qdisc replace dev ${port} clsact`,
      ...['ingress', 'egress'].map(way =>
        program === undefined
          ? `filter delete dev ${port} ${way}`
          : `filter replace dev ${port} ${way} protocol all pref 1 handle 1 bpf direct-action bytecode "${program}"`,
      ),
    ])
    await this.#batch('tc', this.#names.switch, lines)
    await this.#delay(ports, milliseconds(delay ?? '0ms'))
  }

  /** A cable is pulled out, or put in again. */
  async setPort(port: string, state: 'up' | 'down'): Promise<void> {
    await this.#batch('ip', this.#names.switch, [`link set dev ${port} ${state}`])
  }

  /** The command as it is to be started in the head's namespace. */
  inHead(command: string, args: readonly string[]): readonly [command: string, args: readonly string[]] {
    return ['ip', ['netns', 'exec', this.#names.head, command, ...args]]
  }

  inSwitch(command: string, args: readonly string[]): readonly [command: string, args: readonly string[]] {
    return ['ip', ['netns', 'exec', this.#names.switch, command, ...args]]
  }

  /** A switch has no addresses, so it has nothing to say itself: IPv6 would have it announce itself on every port. */
  async #silenceSwitch(): Promise<void> {
    const script = 'for f in all default; do f=/proc/sys/net/ipv6/conf/$f/disable_ipv6; [ ! -e $f ] || echo 1 >$f; done'
    await this.#run(...this.inSwitch('sh', ['-euc', script]))
  }

  async #delay(ports: readonly string[], delay: number): Promise<void> {
    const { stdout } = await this.#run('tc', ['-n', this.#names.switch, '-j', 'qdisc', 'show'])
    const listed = JSON.parse(stdout.toString('utf8')) as { readonly kind: string; readonly dev: string }[]
    const delayed = new Set(listed.filter(({ kind }) => kind === 'netem').map(({ dev }) => dev))
    const lines =
      delay > 0
        ? ports.map(port => `qdisc replace dev ${port} root netem delay ${delay}ms`)
        : ports.filter(port => delayed.has(port)).map(port => `qdisc delete dev ${port} root`)
    await this.#batch('tc', this.#names.switch, lines).catch((error: unknown) => {
      const said = error instanceof MusterError && error.details.some(line => line.includes('kind is unknown'))
      if (!said) throw error
      throw new MusterError('LAB_NEEDS', "this machine's kernel cannot delay packets", {
        hint: 'load netem: modprobe sch_netem',
        cause: error,
      })
    })
  }

  /** One call for all lines; without any there is none. */
  async #batch(tool: 'ip' | 'tc', namespace: string, lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return
    await this.#run(tool, ['-n', namespace, '-batch', '-'], { input: lines.map(line => `${line}\n`).join('') })
  }

  /** As one of the lab's processes: should we be killed, whoever clears up ends it before it makes anything more. */
  #run(command: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return exec(command, args, { ...options, env: { [LAB_VARIABLE]: this.#names.id } })
  }
}

/**
 * Classic BPF that drops that share of all packets, for `tc … bpf`: load a random number (the ancillary word 56 at
 * SKF_AD_OFF), and where it is below the share of 2³² say TC_ACT_SHOT (2), else TC_ACT_UNSPEC (-1). netem loses packets
 * in one direction only, and not every kernel has it.
 */
export function dropProgram(share: number): string | undefined {
  if (share <= 0) return undefined
  if (share >= 1) return '1,6 0 0 2'
  return `4,32 0 0 ${2 ** 32 - 4096 + 56},53 0 1 ${Math.round(share * 2 ** 32)},6 0 0 ${2 ** 32 - 1},6 0 0 2`
}

function percent(text: string): number {
  const [, number] = /^(\d{1,3}(?:\.\d{1,3})?)%$/.exec(text) ?? []
  if (number === undefined || Number(number) > 100) throw new MusterError('USAGE', `${text} is not a share such as 10%`)
  return Number(number) / 100
}

function milliseconds(text: string): number {
  const [, number] = /^(\d{1,5})ms$/.exec(text) ?? []
  if (number === undefined) throw new MusterError('USAGE', `${text} is not a delay such as 20ms`)
  return Number(number)
}
