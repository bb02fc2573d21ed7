import { uuidOf } from '../names.ts'
import { ACCELERATION, type MachineSpec } from '../qemu.ts'

/** A machine that is there for the tests of one image. */
export interface TrialSpec extends Pick<MachineSpec, 'name' | 'mac' | 'memory' | 'cpus' | 'accelerator'> {
  readonly kernel: string
  readonly initrd: string
  readonly args: readonly string[]
  /** Where the boot server listens, on this machine's loopback. */
  readonly port: number
  /** The socket that takes the second serial line. */
  readonly shell: string
}

/** Where the machine finds the boot server: an address of the network that QEMU makes up. */
export const SERVER = { address: '10.0.2.100', port: 7180 } as const
export const NETWORK = '10.0.2.0/24'

/** A root shell on the second serial line; systemd has had it since version 239. */
const DEBUG_SHELL = 'systemd.debug_shell=ttyS1'
const CONSOLE = 'console=ttyS0,115200'

/**
 * QEMU's arguments. Its console is standard output. Its network leads nowhere (restrict) but to the boot server, with a
 * process for each connection: a chardev would be one connection for all. When it wants to start anew it ends.
 */
export function trialArguments(spec: TrialSpec): string[] {
  const { address, port } = SERVER
  const forward = `guestfwd=tcp:${address}:${port}-cmd:busybox nc 127.0.0.1 ${spec.port}`
  return [
    ['-name', spec.name, '-nodefaults', '-no-user-config', '-no-reboot'],
    ['-machine', 'q35,graphics=off', ...ACCELERATION[spec.accelerator]],
    ['-m', `${spec.memory}M`, '-smp', String(spec.cpus), '-display', 'none', '-vga', 'none'],
    ['-sandbox', 'on,obsolete=deny,resourcecontrol=deny'],
    ['-uuid', uuidOf(spec.mac), '-smbios', 'type=1,manufacturer=Muster,product=Test'],
    ['-kernel', spec.kernel, '-initrd', spec.initrd, '-append', [...spec.args, CONSOLE, DEBUG_SHELL].join(' ')],
    ['-netdev', `user,id=net0,net=${NETWORK},restrict=on,ipv6=off,${forward}`],
    ['-device', `virtio-net-pci,netdev=net0,mac=${spec.mac},romfile=`],
    ['-device', 'virtio-rng-pci'],
    ['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
    ['-chardev', `socket,id=shell,path=${spec.shell.replaceAll(',', ',,')}`, '-serial', 'chardev:shell'],
  ].flat()
}

const MIB = 2 ** 20
const SMALLEST = 2048
const STEP = 256

/**
 * MiB for a root in memory: what is fetched, as much again for its overlay, and a system beside it. Of a whole image as one
 * cpio the kernel needs the archive and the files at once, and gives the files half of the memory.
 */
export function memoryFor(
  form: 'squashfs' | 'cpio',
  sizes: { readonly packed: number; readonly tree: number },
): number {
  const bytes = form === 'squashfs' ? 2 * sizes.packed : sizes.packed + 2.5 * sizes.tree
  return Math.max(SMALLEST, Math.ceil((bytes / MIB + 1024) / STEP) * STEP)
}
