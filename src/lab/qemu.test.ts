import { expect, test } from 'vitest'
import { type MachineSpec, qemuArguments } from './qemu.ts'

const SPEC: MachineSpec = {
  name: 'n001',
  mac: '52:54:00:77:00:01',
  memory: 1536,
  cpus: 2,
  firmware: 'bios',
  accelerator: 'tcg',
}

const FILES = {
  disk: '/srv/a,b/disk.img',
  variables: '/srv/a,b/uefi.fd',
  consoleLog: '/srv/a,b/console.log',
  console: '/run/x/n001.console',
  qmp: '/run/x/n001.qmp',
  pid: '/run/x/n001.pid',
}

/** One option a line. */
const shown = (args: readonly string[]): string => args.join(' ').replaceAll(' -', '\n-')

test('a machine with a BIOS', () => {
  expect(shown(qemuArguments(SPEC, 'n001', FILES))).toBe(`-name n001
-nodefaults
-no-user-config
-machine q35,graphics=off
-accel tcg,thread=multi
-cpu max
-m 1536M
-smp 2
-display none
-vga none
-sandbox on,obsolete=deny,resourcecontrol=deny
-uuid 63bb50f0-c4d5-8bd4-a36f-6ed7abb57735
-smbios type=1,manufacturer=Muster,product=Lab,serial=LAB-n001
-boot menu=off,strict=on,reboot-timeout=10000
-action reboot=reset
-netdev tap,id=net0,ifname=n001,script=no,downscript=no
-device virtio-net-pci,netdev=net0,mac=52:54:00:77:00:01,bootindex=1
-drive if=none,id=disk0,format=raw,discard=unmap,file=/srv/a,,b/disk.img
-device virtio-blk-pci,drive=disk0,serial=LAB-n001,bootindex=2
-device virtio-rng-pci
-chardev socket,id=console,path=/run/x/n001.console,server=on,wait=off,logfile=/srv/a,,b/console.log,logappend=on
-serial chardev:console
-chardev socket,id=qmp,path=/run/x/n001.qmp,server=on,wait=off
-mon chardev=qmp,mode=control
-daemonize
-pidfile /run/x/n001.pid`)
})

test('with UEFI it has flash memory, and a network card without a ROM', () => {
  const bios = shown(qemuArguments(SPEC, 'n001', FILES)).split('\n')
  const uefi = shown(qemuArguments({ ...SPEC, firmware: 'uefi' }, 'n001', FILES)).split('\n')
  expect(uefi.filter(line => !bios.includes(line))).toEqual([
    '-drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd',
    '-drive if=pflash,unit=1,format=raw,file=/srv/a,,b/uefi.fd',
    '-device virtio-net-pci,netdev=net0,mac=52:54:00:77:00:01,bootindex=1,romfile=',
  ])
})

test('with KVM it has the processor of this machine', () => {
  const args = qemuArguments({ ...SPEC, accelerator: 'kvm' }, 'n001', FILES)
  expect(shown(args)).toContain('\n-accel kvm\n-cpu host\n')
})

test('a long name shortens only the serial number of the disk', () => {
  const args = shown(qemuArguments({ ...SPEC, name: 'rack12-chassis3-node07' }, '_port', FILES))
  expect(args).toContain('serial=LAB-rack12-chassis3-node07\n')
  expect(args).toContain(',serial=LAB-rack12-chassis3-,')
})
