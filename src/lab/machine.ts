import { copyFile, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { exists, makeDirectory } from '../lib/dirs.ts'
import { MusterError } from '../lib/errors.ts'
import { exec } from '../lib/exec.ts'
import { isErrno, replaceFile } from '../state/files.ts'
import { LAB_VARIABLE, type LabNames, NODE_VARIABLE, portName } from './names.ts'
import type { LabNetwork } from './network.ts'
import { type ProcessId, endProcess, environmentOf, identify, isGone, isRunning } from './processes.ts'
import { type MachineFiles, type MachineSpec, OVMF_VARIABLES, QEMU, qemuArguments } from './qemu.ts'
import { Qmp } from './qmp.ts'

export const POWER_ACTIONS = ['on', 'off', 'cycle', 'graceful'] as const
/** `off` pulls the plug, `graceful` presses the button and waits, `cycle` does so and switches on again. */
export type PowerAction = (typeof POWER_ACTIONS)[number]

const DISK_SIZE = 16 * 2 ** 30
/** How long an operating system may take to end. */
const GRACE = 90_000
/** How long QEMU may take to answer, and to end when it is asked to; it takes no time unless it hangs. */
const PATIENCE = 5000

/** A virtual machine is a QEMU in the switch's namespace; one that is off is no process at all. */
export class Machine {
  readonly spec: MachineSpec
  readonly port: string
  readonly files: MachineFiles
  readonly #dir: string
  readonly #names: LabNames
  readonly #network: LabNetwork

  constructor(spec: MachineSpec, dir: string, names: LabNames, network: LabNetwork) {
    const port = portName(spec.name)
    this.spec = spec
    this.port = port
    this.#dir = dir
    this.#names = names
    this.#network = network
    this.files = {
      disk: join(dir, 'disk.img'),
      variables: join(dir, 'uefi-variables.fd'),
      consoleLog: join(dir, 'console.log'),
      console: join(names.run, `${port}.console`),
      qmp: join(names.run, `${port}.qmp`),
      pid: join(names.run, `${port}.pid`),
    }
  }

  /** Its QEMU, if it is on: the process says itself whose machine it is. */
  async process(): Promise<ProcessId | undefined> {
    const text = await readFile(this.files.pid, 'utf8').catch(ignoreMissing)
    const id = /^\d{1,9}\s*$/.test(text) ? identify(Number(text)) : undefined
    if (id === undefined) return undefined
    const environment = await environmentOf(id.pid)
    const isOurs = Object.entries(this.#marks).every(([name, value]) => environment.includes(`${name}=${value}`))
    return isOurs && isRunning(id) ? id : undefined
  }

  /** Not to be called by two at once. */
  async power(action: PowerAction, grace = GRACE): Promise<void> {
    const running = await this.process()
    if (running === undefined) {
      if (action === 'on' || action === 'cycle') await this.#start()
      return
    }
    if (action === 'off') await this.#unplug(running)
    if (action === 'graceful') await this.#shutDown(running, grace)
    if (action === 'cycle') {
      await this.#unplug(running)
      await this.#start()
    }
  }

  /** The machine's control socket; it has one client at a time. */
  qmp(): Promise<Qmp> {
    return Qmp.connect(this.files.qmp, PATIENCE)
  }

  get #marks(): Readonly<Record<string, string>> {
    return { [LAB_VARIABLE]: this.#names.id, [NODE_VARIABLE]: this.spec.name }
  }

  async #start(): Promise<void> {
    await makeDirectory(this.#dir, 0o700)
    await makeDirectory(this.#names.run, 0o700)
    await this.#makeDisks()
    const args = qemuArguments(this.spec, this.port, this.files)
    await exec(...this.#network.inSwitch(QEMU, args), { env: this.#marks }).catch((error: unknown) => {
      throw new MusterError('LAB_FAILED', `${this.spec.name} does not start`, {
        cause: error,
        details: error instanceof MusterError ? [error.message, ...error.details] : [],
      })
    })
  }

  /** A disk is empty at first, and keeps what is written to it while the lab lasts. */
  async #makeDisks(): Promise<void> {
    await using disk = await open(this.files.disk, 'a', 0o600)
    if ((await disk.stat()).size === 0) await disk.truncate(DISK_SIZE)
    const { variables } = this.files
    if (this.spec.firmware === 'uefi' && !(await exists(variables)))
      await replaceFile(variables, temporary => copyFile(OVMF_VARIABLES, temporary))
  }

  async #unplug(running: ProcessId): Promise<void> {
    try {
      using qmp = await this.qmp()
      // It may end before it has answered.
      await Promise.race([qmp.execute('quit'), qmp.closed])
      await isGone(running, PATIENCE)
    } catch {
      // One that does not listen any more is ended below.
    }
    await endProcess(running, PATIENCE)
    await this.#removeSockets()
  }

  async #shutDown(running: ProcessId, grace: number): Promise<void> {
    using qmp = await this.qmp()
    await qmp.execute('system_powerdown')
    if (await isGone(running, grace)) return
    throw new MusterError(
      'LAB_FAILED',
      `${this.spec.name} has not switched itself off in ${Math.round(grace / 1000)} s`,
      {
        hint: `switch it off: muster lab power ${this.spec.name} off`,
      },
    )
  }

  /** QEMU takes them away itself, unless it was killed. */
  async #removeSockets(): Promise<void> {
    for (const file of [this.files.console, this.files.qmp, this.files.pid]) await rm(file, { force: true })
  }
}

function ignoreMissing(error: unknown): string {
  if (isErrno(error, 'ENOENT')) return ''
  throw error
}
