import { uuidOf } from './names.ts'

/** What a virtual machine is made of. */
export interface MachineSpec {
  readonly name: string
  readonly mac: string
  /** MiB. */
  readonly memory: number
  readonly cpus: number
  readonly firmware: Firmware
  readonly accelerator: Accelerator
}

export type Firmware = 'bios' | 'uefi'
export type Accelerator = 'kvm' | 'tcg'

/** Absolute paths: in the background QEMU's directory is the root. */
export interface MachineFiles {
  readonly disk: string
  /** What UEFI remembers: boot order and the like. */
  readonly variables: string
  readonly consoleLog: string
  readonly console: string
  readonly qmp: string
  readonly pid: string
}

export const QEMU = 'qemu-system-x86_64'
export const OVMF_CODE = '/usr/share/OVMF/OVMF_CODE_4M.fd'
export const OVMF_VARIABLES = '/usr/share/OVMF/OVMF_VARS_4M.fd'

/** What makes the machine fast: the processor's help, or a translator with a thread per CPU. */
export const ACCELERATION: Readonly<Record<Accelerator, readonly string[]>> = {
  kvm: ['-accel', 'kvm', '-cpu', 'host'],
  tcg: ['-accel', 'tcg,thread=multi', '-cpu', 'max'],
}

/** Ten seconds after nothing could be booted a BIOS tries again, as servers do. */
const RETRY = 10_000

/** QEMU's arguments; they return once the machine runs in the background, or say why it does not. */
export function qemuArguments(spec: MachineSpec, port: string, files: MachineFiles): string[] {
  const serial = `LAB-${spec.name}`
  return [
    ['-name', quoted(spec.name), '-nodefaults', '-no-user-config'],
    // Without graphics SeaBIOS, and with it the BIOS iPXE, talks to the serial port.
    ['-machine', 'q35,graphics=off', ...ACCELERATION[spec.accelerator]],
    ['-m', `${spec.memory}M`, '-smp', String(spec.cpus), '-display', 'none', '-vga', 'none'],
    ['-sandbox', 'on,obsolete=deny,resourcecontrol=deny'],
    ['-uuid', uuidOf(spec.mac)],
    ['-smbios', `type=1,manufacturer=Muster,product=Lab,serial=${quoted(serial)}`],
    ['-boot', `menu=off,strict=on,reboot-timeout=${RETRY}`, '-action', 'reboot=reset'],
    spec.firmware === 'uefi' ? flash(files) : [],
    ['-netdev', `tap,id=net0,ifname=${port},script=no,downscript=no`],
    ['-device', `virtio-net-pci,netdev=net0,mac=${spec.mac},bootindex=1${ROM[spec.firmware]}`],
    ['-drive', `if=none,id=disk0,format=raw,discard=unmap,file=${quoted(files.disk)}`],
    ['-device', `virtio-blk-pci,drive=disk0,serial=${quoted(serial.slice(0, LONGEST_SERIAL))},bootindex=2`],
    ['-device', 'virtio-rng-pci'],
    ['-chardev', `${server('console', files.console)},logfile=${quoted(files.consoleLog)},logappend=on`],
    ['-serial', 'chardev:console'],
    ['-chardev', server('qmp', files.qmp), '-mon', 'chardev=qmp,mode=control'],
    ['-daemonize', '-pidfile', files.pid],
  ].flat()
}

/** The card's own ROM is an iPXE. UEFI does without it: then its own PXE runs and loads our loader, as real machines do. */
const ROM: Readonly<Record<Firmware, string>> = { bios: '', uefi: ',romfile=' }

/** Of a virtio disk. */
const LONGEST_SERIAL = 20

const flash = ({ variables }: MachineFiles): string[] => [
  '-drive',
  `if=pflash,unit=0,format=raw,readonly=on,file=${OVMF_CODE}`,
  '-drive',
  `if=pflash,unit=1,format=raw,file=${quoted(variables)}`,
]

const server = (id: string, path: string): string => `socket,id=${id},path=${quoted(path)},server=on,wait=off`

/** A comma in a value would begin the next option. */
const quoted = (value: string): string => value.replaceAll(',', ',,')
