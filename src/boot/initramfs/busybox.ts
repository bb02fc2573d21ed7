import { readFile } from 'node:fs/promises'
import { MusterError } from '../../lib/errors.ts'
import { readElf } from './elf.ts'

export type Arch = 'amd64' | 'arm64'

/** What our scripts call, and what somebody at a console would miss. */
export const APPLETS: readonly string[] = [
  '[ ash awk basename cat chmod chroot clear cp cttyhack cut date dd df dirname dmesg du echo env expr false find free grep',
  'halt head hexdump hostname id ifconfig insmod ip kill less ln losetup ls lsmod mkdir mkfifo mknod modprobe more mount mv nc',
  'netstat nproc nslookup od ping pivot_root poweroff printf ps pwd readlink realpath reboot rm rmdir rmmod route sed seq setsid sh',
  'sha256sum sleep sort stat stty switch_root sync sysctl tail tar tee test tftp timeout top touch tr traceroute true tty',
  'udhcpc umount uname uniq uptime usleep vi wc wget which xargs xxd zcat',
].flatMap(line => line.split(' '))

/** Where Debian and others put it. */
const PLACES = ['/usr/bin/busybox', '/bin/busybox', '/usr/sbin/busybox', '/sbin/busybox']

/** The busybox of this machine, for machines of the same kind. */
export async function findBusybox(arch: Arch): Promise<string> {
  for (const path of PLACES) if ((await problemOf(path, arch)) === undefined) return path
  throw new MusterError('BUILD_NEEDS', `this machine lacks a statically linked busybox for ${arch}`, {
    hint: 'on Debian: apt-get install busybox-static',
  })
}

export async function readBusybox(path: string, arch: Arch): Promise<Buffer> {
  const problem = await problemOf(path, arch)
  if (problem !== undefined)
    throw new MusterError('BUILD_NEEDS', `${path} ${problem}`, { hint: 'on Debian: apt-get install busybox-static' })
  return readFile(path)
}

/** In an initramfs there is no library it could be linked with. */
async function problemOf(path: string, arch: Arch): Promise<string | undefined> {
  const bytes = await readFile(path).catch(() => undefined)
  if (bytes === undefined) return 'cannot be read'
  const elf = readElf(bytes)
  if (elf?.machine !== arch) return `is not a program for ${arch}`
  return elf.isDynamic ? 'needs shared libraries: an initramfs has none' : undefined
}
