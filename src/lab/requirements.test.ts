import { expect, test } from 'vitest'
import { MusterError } from '../lib/errors.ts'
import { type Host, requireLab, thisHost } from './requirements.ts'

const EVERYTHING: Host = { isRoot: true, has: async () => true }
const without = (...missing: string[]): Host => ({ isRoot: true, has: async what => !missing.includes(what) })

const failureOf = (work: Promise<void>): Promise<MusterError> =>
  work.then(
    () => Promise.reject(new Error('nothing was missing')),
    (error: unknown) => (error instanceof MusterError ? error : Promise.reject(error as Error)),
  )

test('nothing is said where everything is there', async () => {
  await expect(requireLab('bios', EVERYTHING)).resolves.toBeUndefined()
  await expect(requireLab('uefi', EVERYTHING)).resolves.toBeUndefined()
})

test('all that is missing is said at once, with what to install', async () => {
  const error = await failureOf(requireLab('uefi', { isRoot: false, has: async () => false }))
  expect(error.code).toBe('LAB_NEEDS')
  expect(error.message).toBe('a lab with virtual machines needs what is not there')
  expect(error.details).toEqual([
    'root: it makes networks of its own',
    'qemu-system-x86_64 (package qemu-system-x86)',
    'ip (package iproute2)',
    'tc (package iproute2)',
    'dnsmasq (package dnsmasq-base)',
    '/usr/lib/ipxe/undionly.kpxe (package ipxe)',
    '/usr/lib/ipxe/ipxe.efi (package ipxe)',
    '/usr/share/OVMF/OVMF_CODE_4M.fd (package ovmf)',
    '/usr/share/OVMF/OVMF_VARS_4M.fd (package ovmf)',
    '/dev/net/tun: the ports of its switch',
  ])
  expect(error.hint).toBe(
    'run it as root, with sudo; on Debian: apt-get install qemu-system-x86 iproute2 dnsmasq-base ipxe ovmf; ' +
      'load the module: modprobe tun. Or without any of it: muster lab up --nodes 0 --simulated 100',
  )
})

test.each([
  ['uefi', '/usr/share/OVMF/OVMF_CODE_4M.fd', 'on Debian: apt-get install ovmf.'],
  ['bios', '/usr/lib/ipxe/qemu/efi-virtio.rom', 'on Debian: apt-get install ipxe-qemu.'],
  ['bios', '/dev/net/tun', 'load the module: modprobe tun.'],
] as const)('a lab with %s needs %s', async (firmware, what, step) => {
  expect((await failureOf(requireLab(firmware, without(what)))).hint).toBe(
    `${step} Or without any of it: muster lab up --nodes 0 --simulated 100`,
  )
})

test('a lab with a BIOS needs no UEFI, and the other way round', async () => {
  await expect(requireLab('bios', without('/usr/share/OVMF/OVMF_CODE_4M.fd'))).resolves.toBeUndefined()
  await expect(requireLab('uefi', without('/usr/lib/ipxe/qemu/efi-virtio.rom'))).resolves.toBeUndefined()
})

test('this machine has commands and files', async () => {
  const host = thisHost()
  expect(
    await Promise.all(['sh', 'no-such-command', '/proc/self', '/no/such/file'].map(what => host.has(what))),
  ).toEqual([true, false, true, false])
})
