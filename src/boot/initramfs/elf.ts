/** The little of ELF that is needed here: for which machine, linked how, and a section by its name. Little-endian, 64 bits. */
export interface Elf {
  readonly machine: 'amd64' | 'arm64' | 'other'
  /** It needs a dynamic loader, and with it shared libraries. */
  readonly isDynamic: boolean
  section(name: string): Buffer | undefined
}

const MAGIC = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1])
const MACHINES: Readonly<Record<number, Elf['machine']>> = { 62: 'amd64', 183: 'arm64' }
const PROGRAM_INTERPRETER = 3

/** Undefined for what is not such a file, or is damaged. */
export function readElf(file: Buffer): Elf | undefined {
  try {
    return parse(file)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function parse(file: Buffer): Elf | undefined {
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const programs = table(file, { at: 0x20, entrySizeAt: 0x36, countAt: 0x38 })
  const sections = table(file, { at: 0x28, entrySizeAt: 0x3a, countAt: 0x3c }).map(header => ({
    nameAt: header.readUInt32LE(0),
    content: slice(file, header.readBigUInt64LE(0x18), header.readBigUInt64LE(0x20)),
  }))
  const names = sections[file.readUInt16LE(0x3e)]?.content ?? Buffer.alloc(0)
  const nameOf = (at: number): string => names.toString('latin1', at, names.indexOf(0, at))
  return {
    machine: MACHINES[file.readUInt16LE(0x12)] ?? 'other',
    isDynamic: programs.some(header => header.readUInt32LE(0) === PROGRAM_INTERPRETER),
    section: name => sections.find(({ nameAt }) => nameOf(nameAt) === name)?.content,
  }
}

function table(file: Buffer, where: Readonly<Record<'at' | 'entrySizeAt' | 'countAt', number>>): Buffer[] {
  const start = Number(file.readBigUInt64LE(where.at))
  const size = file.readUInt16LE(where.entrySizeAt)
  const count = file.readUInt16LE(where.countAt)
  return Array.from({ length: count }, (_, number) => file.subarray(start + number * size, start + (number + 1) * size))
}

const slice = (file: Buffer, offset: bigint, size: bigint): Buffer =>
  file.subarray(Number(offset), Number(offset) + Number(size))
