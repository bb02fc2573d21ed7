import { createHash } from 'node:crypto'
import { access, constants, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { makeDirectory } from '../lib/dirs.ts'
import { startProgram } from '../lib/program.ts'
import { isErrno, replaceFile } from '../state/files.ts'
import { LAB_VARIABLE, type LabNames } from './names.ts'
import { bootId } from './processes.ts'
import { ACCELERATION, type Accelerator, QEMU } from './qemu.ts'

/** Which accelerator the machines get, and why. */
export interface Choice {
  readonly accelerator: Accelerator
  readonly reason: string
}

export interface ProbeOptions {
  /** Of the lab whose probe it is. */
  readonly names: LabNames
  /** The kernel to be booted later on; else one of this machine's own, else 22 bytes of our own. */
  readonly kernel?: string
  /** Where the answer is kept until this machine is started anew. */
  readonly cache: string
  readonly device?: string
}

const Cached = z.strictObject({ key: z.string(), accelerator: z.enum(['kvm', 'tcg']), reason: z.string() })

const PATIENCE = 10_000

/**
 * Uses KVM only where it has just shown that it works: where virtual machines are nested /dev/kvm may be there, and yet
 * a kernel hangs before its first word.
 */
export async function chooseAccelerator(options: ProbeOptions, boots = bootsUnder): Promise<Choice> {
  const device = options.device ?? '/dev/kvm'
  const isThere = await access(device, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
  if (!isThere) return { accelerator: 'tcg', reason: `there is no ${device} to use` }
  const kernel = options.kernel ?? (await hostKernel())
  const key = `${bootId()} ${kernel === undefined ? 'boot sector' : await digestOf(kernel)}`
  const known = await readCache(options.cache)
  if (known?.key === key) return { accelerator: known.accelerator, reason: known.reason }
  const trouble = await boots('kvm', kernel, options.names)
  const choice: Choice =
    trouble === undefined
      ? { accelerator: 'kvm', reason: 'KVM works' }
      : { accelerator: 'tcg', reason: `KVM does not work here: ${trouble}` }
  await replaceFile(options.cache, file => writeFile(file, JSON.stringify({ key, ...choice })))
  return choice
}

/** Nothing if a kernel says its first word in time, else what happened instead. */
export async function bootsUnder(
  accelerator: Accelerator,
  kernel: string | undefined,
  { id, run }: LabNames,
  patience = PATIENCE,
): Promise<string | undefined> {
  const first = kernel === undefined ? SECTOR_SAYS : 'Linux version'
  const source = kernel === undefined ? await diskArguments(run) : kernelArguments(kernel)
  const alive = Promise.withResolvers<undefined>()
  let complaint: string | undefined
  await using program = await startProgram(QEMU, [...ACCELERATION[accelerator], ...PROBE, ...source], {
    env: { [LAB_VARIABLE]: id },
    onLine: line => {
      if (line.includes(first)) alive.resolve(undefined)
      else complaint ??= COMPLAINT.exec(line)?.[1]
    },
  })
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve(`a kernel does not start within ${patience / 1000} s`), patience)
  const ended = program.ended.then(how => `QEMU ends: ${complaint ?? how}`)
  return await Promise.race([alive.promise, late.promise, ended]).finally(() => clearTimeout(timer))
}

/** The first is the cause; what follows are assertions. */
const COMPLAINT = /^qemu(?:-system-x86_64)?: (?:error: )?(.{1,100})/

const PROBE =
  '-nodefaults -no-user-config -machine pc -m 256M -display none -vga none -nic none -serial stdio -no-reboot'.split(
    ' ',
  )

const kernelArguments = (kernel: string): string[] => [
  '-kernel',
  kernel,
  '-append',
  'console=ttyS0 earlyprintk=serial,ttyS0 panic=-1',
]

async function diskArguments(dir: string): Promise<string[]> {
  const file = join(dir, 'probe.img')
  await makeDirectory(dir, 0o700)
  await writeFile(file, bootSector())
  return ['-drive', `if=ide,format=raw,file=${file}`]
}

const SECTOR_SAYS = 'muster'

/** A disk that says a word on the first serial port. */
export function bootSector(): Buffer {
  const code = Buffer.from(
    [
      '31c0 8ed8', //    xor ax, ax; mov ds, ax
      'be167c', //       mov si, the text, at 22 bytes from where a BIOS puts the sector (0x7c00)
      'baf803', //       mov dx, the port
      'ac 84c0 7403', // lodsb; test al, al; jz +3
      'ee ebf8', //      out dx, al; jmp to lodsb
      'fa f4 ebfd', //   cli; hlt; jmp to hlt
    ]
      .join('')
      .replaceAll(' ', ''),
    'hex',
  )
  const sector = Buffer.alloc(512)
  sector.set(code)
  sector.write(`${SECTOR_SAYS}\r\n`, code.length)
  sector.writeUInt16LE(0xaa55, 510)
  return sector
}

async function hostKernel(): Promise<string | undefined> {
  const names = await readdir('/boot').catch(() => [])
  const name = names
    .filter(each => each.startsWith('vmlinuz-'))
    .sort()
    .at(-1)
  return name === undefined ? undefined : join('/boot', name)
}

async function digestOf(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
}

/** An answer nobody can read is none. */
async function readCache(file: string): Promise<z.infer<typeof Cached> | undefined> {
  try {
    return Cached.safeParse(JSON.parse(await readFile(file, 'utf8'))).data
  } catch (error) {
    if (isErrno(error, 'ENOENT') || error instanceof SyntaxError) return undefined
    throw error
  }
}
