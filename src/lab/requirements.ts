import { exists } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { isInstalled } from '../lib/which.ts'
import { type Firmware, OVMF_CODE, OVMF_VARIABLES, QEMU } from './qemu.ts'

/** A command, or a file by its path; and the Debian package that brings it. */
type Needed = readonly [what: string, debianPackage: string]

const ALWAYS: readonly Needed[] = [
  [QEMU, 'qemu-system-x86'],
  ['ip', 'iproute2'],
  ['tc', 'iproute2'],
  ['dnsmasq', 'dnsmasq-base'],
  ['/usr/lib/ipxe/undionly.kpxe', 'ipxe'],
  ['/usr/lib/ipxe/ipxe.efi', 'ipxe'],
]

const BY_FIRMWARE: Readonly<Record<Firmware, readonly Needed[]>> = {
  bios: [['/usr/lib/ipxe/qemu/efi-virtio.rom', 'ipxe-qemu']],
  uefi: [
    [OVMF_CODE, 'ovmf'],
    [OVMF_VARIABLES, 'ovmf'],
  ],
}

const TUN = '/dev/net/tun'

/** What there is on this machine. */
export interface Host {
  readonly isRoot: boolean
  /** Whether a command, or a file by its path, is there. */
  has(what: string): Promise<boolean>
}

export const thisHost = (): Host => ({
  isRoot: isRoot(),
  has: what => (what.startsWith('/') ? exists(what) : isCommand(what)),
})

const isRoot = (): boolean => process.getuid?.() === 0

/** Says all at once what a lab of virtual machines lacks here, before anything has begun. */
export async function requireLab(firmware: Firmware, host: Host = thisHost()): Promise<void> {
  const missing: Needed[] = []
  for (const needed of [...ALWAYS, ...BY_FIRMWARE[firmware]]) if (!(await host.has(needed[0]))) missing.push(needed)
  const packages = [...new Set(missing.map(([, debianPackage]) => debianPackage))]
  const hasTun = await host.has(TUN)
  const install = packages.length === 0 ? [] : [`on Debian: apt-get install ${packages.join(' ')}`]
  const steps = [
    ...(host.isRoot ? [] : ['run it as root, with sudo']),
    ...install,
    ...(hasTun ? [] : ['load the module: modprobe tun']),
  ]
  if (steps.length === 0) return
  const details = [
    ...(host.isRoot ? [] : ['root: it makes networks of its own']),
    ...missing.map(([what, debianPackage]) => `${what} (package ${debianPackage})`),
    ...(hasTun ? [] : [`${TUN}: the ports of its switch`]),
  ]
  throw new MusterError('LAB_NEEDS', 'a lab with virtual machines needs what is not there', {
    details,
    hint: `${steps.join('; ')}. Or without any of it: muster lab up --nodes 0 --simulated 100`,
  })
}

/** Administrators' commands are there for others too, only not where those look. */
const isCommand = (name: string): Promise<boolean> => isInstalled(name, isRoot() ? [] : ['/usr/sbin', '/sbin'])
