import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished, test } from 'vitest'
import { bootSector, bootsUnder, chooseAccelerator } from './kvm.ts'
import { type LabNames, labNames } from './names.ts'
import { processesOf } from './processes.ts'

let dir = ''
let names: LabNames
beforeEach(async () => {
  const made = await mkdtemp(join(tmpdir(), 'muster-kvm-'))
  dir = made
  names = labNames(made)
  onTestFinished(async () => {
    for (const path of [made, labNames(made).run]) await rm(path, { recursive: true, force: true })
  })
})

/**
 * What a boot loader takes for a Linux kernel, and starts in the processor's first mode: it says a text on the serial
 * port, and then nothing any more. See Documentation/arch/x86/boot.rst in the kernel's sources.
 */
async function kernelThatSays(text: string): Promise<string> {
  const file = join(dir, 'vmlinuz')
  const kernel = Buffer.alloc(16_384)
  kernel.writeUInt8(4, 0x1f1) // sectors of set-up code
  kernel.writeUInt16LE(0xaa55, 0x1fe)
  kernel.set([0xeb, 0x5e], 0x200) // jump to 0x260
  kernel.write('HdrS', 0x202)
  kernel.writeUInt16LE(0x0204, 0x206) // version of the protocol
  kernel.writeUInt8(1, 0x211) // the kernel is loaded high
  // The same words as in the boot sector; the text is at 0x280.
  kernel.set(Buffer.from('be8002baf803ac84c07403eeebf8faf4ebfd', 'hex'), 0x260)
  kernel.write(`${text}\r\n`, 0x280)
  await writeFile(file, kernel)
  return file
}

describe('a short boot', () => {
  it('shows that an accelerator works, with the boot sector of our own', async () => {
    expect(bootSector()).toHaveLength(512)
    expect(await bootsUnder('tcg', undefined, names, 240_000)).toBeUndefined()
  })

  it('shows that it works, with a kernel', async () => {
    const kernel = await kernelThatSays('Linux version 6.1.0')
    expect(await bootsUnder('tcg', kernel, names, 240_000)).toBeUndefined()
  })

  it('shows that it does not when the kernel hangs before its first word, and leaves nothing behind', async () => {
    const kernel = await kernelThatSays('Probing EDD (edd=off to disable)...')
    expect(await bootsUnder('tcg', kernel, names, 3000)).toBe('a kernel does not start within 3 s')
    expect(await processesOf(names)).toEqual([])
  })

  it('shows that it does not when QEMU ends, with what it said', async () => {
    const missing = join(dir, 'missing')
    expect(await bootsUnder('tcg', missing, names)).toBe(
      `QEMU ends: could not open kernel file '${missing}': No such file or directory`,
    )
  })
})

const cache = (): string => join(dir, 'kvm.json')

describe('the choice', () => {
  test('without the device is TCG', async () => {
    const choice = await chooseAccelerator({ names, cache: cache(), device: join(dir, 'no-kvm') })
    expect(choice).toEqual({ accelerator: 'tcg', reason: `there is no ${dir}/no-kvm to use` })
  })

  test('with a kernel that hangs is TCG, whatever this machine can do', async () => {
    const kernel = await kernelThatSays('Probing EDD (edd=off to disable)...')
    const choice = await chooseAccelerator({ names, cache: cache(), kernel })
    expect(choice.accelerator).toBe('tcg')
    expect(choice.reason).toMatch(/^(there is no \/dev\/kvm to use|KVM does not work here: .+)$/)
  })

  test('is made once for a kernel', async () => {
    const asked: (string | undefined)[] = []
    const device = join(dir, 'kvm')
    await writeFile(device, '')
    const choose = (kernel: string, trouble?: string) =>
      chooseAccelerator({ names, cache: cache(), kernel, device }, async (_, tried) => {
        asked.push(tried)
        return trouble
      })
    const kernel = await kernelThatSays('Linux version 6.1.0')
    expect(await choose(kernel)).toEqual({ accelerator: 'kvm', reason: 'KVM works' })
    expect(await choose(kernel, 'not asked again')).toEqual({ accelerator: 'kvm', reason: 'KVM works' })
    const other = join(dir, 'other')
    await writeFile(other, 'other')
    const no = { accelerator: 'tcg', reason: 'KVM does not work here: it hangs' }
    expect(await choose(other, 'it hangs')).toEqual(no)
    expect(await choose(other, 'not asked again')).toEqual(no)
    await writeFile(cache(), '{"key": 1')
    expect(await choose(other)).toEqual({ accelerator: 'kvm', reason: 'KVM works' })
    expect(asked).toEqual([kernel, other, other])
  })
})
