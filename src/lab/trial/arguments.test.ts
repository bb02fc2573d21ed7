import { expect, test } from 'vitest'
import { memoryFor, trialArguments } from './arguments.ts'

test('a machine without a disk, whose network leads to the boot server alone', () => {
  const words = trialArguments({
    name: 'muster-test',
    mac: '52:54:00:74:72:79',
    memory: 2048,
    cpus: 2,
    accelerator: 'tcg',
    kernel: '/images/kernel',
    initrd: '/images/initrd',
    args: ['muster.root=squashfs', 'muster.node=muster-test'],
    port: 40123,
    shell: '/tmp/a,b/shell',
  })
  const expected = [
    ['-name', 'muster-test', '-nodefaults', '-no-user-config', '-no-reboot'],
    ['-machine', 'q35,graphics=off', '-accel', 'tcg,thread=multi', '-cpu', 'max'],
    ['-m', '2048M', '-smp', '2', '-display', 'none', '-vga', 'none'],
    ['-sandbox', 'on,obsolete=deny,resourcecontrol=deny'],
    ['-uuid', 'c1a24d2f-7d4d-8171-a4ea-c0d16c4ac0e9', '-smbios', 'type=1,manufacturer=Muster,product=Test'],
    ['-kernel', '/images/kernel', '-initrd', '/images/initrd'],
    ['-append', 'muster.root=squashfs muster.node=muster-test console=ttyS0,115200 systemd.debug_shell=ttyS1'],
    [
      '-netdev',
      'user,id=net0,net=10.0.2.0/24,restrict=on,ipv6=off,guestfwd=tcp:10.0.2.100:7180-cmd:busybox nc 127.0.0.1 40123',
    ],
    ['-device', 'virtio-net-pci,netdev=net0,mac=52:54:00:74:72:79,romfile='],
    ['-device', 'virtio-rng-pci'],
    ['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
    ['-chardev', 'socket,id=shell,path=/tmp/a,,b/shell', '-serial', 'chardev:shell'],
  ]
  expect(words).toEqual(expected.flat())
})

const MIB = 2 ** 20
test.each([
  ['squashfs', 90, 280, 2048],
  ['squashfs', 900, 3000, 3072],
  ['squashfs', 4000, 12_000, 9216],
  ['cpio', 85, 280, 2048],
  ['cpio', 900, 3000, 9472],
] as const)('a %s of %d MiB, %d MiB unpacked, gets %d MiB', (form, packed, tree, memory) => {
  expect(memoryFor(form, { packed: packed * MIB, tree: tree * MIB })).toBe(memory)
})
