import { mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { exists } from '../lib/dirs.ts'
import { Machine } from './machine.ts'
import { labNames } from './names.ts'
import { LabNetwork } from './network.ts'
import { endAll, isRunning } from './processes.ts'
import type { Firmware } from './qemu.ts'
import { NODE, says } from './testing.ts'

/** A machine on a switch, with nobody to boot it. */
async function newMachine(firmware: Firmware = 'bios'): Promise<Machine> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'muster-machine, ')))
  const names = labNames(dir)
  const network = new LabNetwork(names)
  onTestFinished(async () => {
    await endAll(names)
    await network.destroy()
    for (const path of [dir, names.run]) await rm(path, { recursive: true, force: true })
  })
  await network.create([{ cidr: '10.77.0.1/16' }], [NODE.name])
  return new Machine({ ...NODE, cpus: 1, firmware, accelerator: 'tcg' }, dir, names, network)
}

const pidOf = async (machine: Machine): Promise<number> => (await machine.process())?.pid ?? 0

describe('a virtual machine with a BIOS', () => {
  it('is off at first; switched on, it asks the network for something to boot', async () => {
    const machine = await newMachine()
    expect(await machine.process()).toBeUndefined()
    await machine.power('off')
    expect(await exists(machine.files.disk)).toBe(false)
    await machine.power('on')
    const text = await says(machine.files.consoleLog, `net0: ${NODE.mac}`)
    expect(text).toContain('SeaBIOS')
    expect(text).toContain('Machine UUID 63bb50f0-c4d5-8bd4-a36f-6ed7abb57735')
    expect(text).toContain('iPXE')
    const disk = await stat(machine.files.disk)
    expect(disk.size).toBe(17_179_869_184)
    expect(disk.blocks).toBeLessThan(100)
  })

  it('can be switched on once, cycled, and switched off; its console log goes on', async () => {
    const machine = await newMachine()
    await machine.power('cycle')
    const pid = await pidOf(machine)
    expect(pid).toBeGreaterThan(0)
    await says(machine.files.consoleLog, 'SeaBIOS')
    await machine.power('on')
    expect(await pidOf(machine)).toBe(pid)

    const before = (await readFile(machine.files.consoleLog, 'latin1')).length
    await machine.power('cycle')
    expect(await pidOf(machine)).not.toBe(pid)
    await says(machine.files.consoleLog, 'SeaBIOS', before)

    const running = await machine.process()
    await machine.power('off')
    expect(running !== undefined && isRunning(running)).toBe(false)
    expect(await machine.process()).toBeUndefined()
    for (const socket of [machine.files.qmp, machine.files.console, machine.files.pid])
      expect(await exists(socket)).toBe(false)

    await machine.power('on')
    expect(await pidOf(machine)).not.toBe(pid)
    await says(machine.files.consoleLog, /SeaBIOS[^]*SeaBIOS[^]*SeaBIOS/)
  })

  it('that hangs is cycled and switched off nevertheless', async () => {
    const machine = await newMachine()
    await machine.power('on')
    process.kill(await pidOf(machine), 'SIGSTOP')
    const hung = await pidOf(machine)
    await machine.power('cycle')
    expect(await pidOf(machine)).not.toBe(hung)
    process.kill(await pidOf(machine), 'SIGSTOP')
    await machine.power('off')
    expect(await machine.process()).toBeUndefined()
  })

  it('that was killed is off, and can be switched on again', async () => {
    const machine = await newMachine()
    await machine.power('on')
    process.kill(await pidOf(machine), 'SIGKILL')
    await expect.poll(() => machine.process(), { timeout: 60_000 }).toBeUndefined()
    await machine.power('on')
    await says(machine.files.consoleLog, 'iPXE')
  })

  it('without an operating system does not switch itself off, and says so', async () => {
    const machine = await newMachine()
    await machine.power('on')
    await expect(machine.power('graceful', 100)).rejects.toMatchObject({
      code: 'LAB_FAILED',
      message: 'n001 has not switched itself off in 0 s',
      hint: 'switch it off: muster lab power n001 off',
    })
    expect(await pidOf(machine)).toBeGreaterThan(0)
  })

  it('is not whoever has its number now', async () => {
    const machine = await newMachine()
    await machine.power('on')
    await machine.power('off')
    await writeFile(machine.files.pid, `${process.pid}\n`)
    expect(await machine.process()).toBeUndefined()
  })

  it('that cannot start says what QEMU says', async () => {
    const machine = await newMachine()
    await mkdir(machine.files.consoleLog)
    await expect(machine.power('on')).rejects.toMatchObject({
      code: 'LAB_FAILED',
      message: 'n001 does not start',
      details: expect.arrayContaining([expect.stringContaining("console.log': Is a directory")]),
    })
  })
})

describe('a virtual machine with UEFI', () => {
  it("boots by its firmware's own PXE, not by iPXE in the card", async () => {
    const machine = await newMachine('uefi')
    await machine.power('on')
    const text = await says(machine.files.consoleLog, 'Start PXE over IPv4')
    expect(text).not.toContain('iPXE')
  })
})
