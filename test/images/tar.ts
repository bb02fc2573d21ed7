/** Tar archives member by member: what no tar would write can be written here. */
const BLOCK = 512

export interface Member {
  readonly name: string
  readonly type?: 'file' | 'hardlink' | 'symlink' | 'char' | 'block' | 'directory' | 'fifo'
  readonly link?: string
  readonly content?: string
  readonly mode?: number
  readonly device?: readonly [major: number, minor: number]
}

const FLAGS = { file: '0', hardlink: '1', symlink: '2', char: '3', block: '4', directory: '5', fifo: '6' } as const

export function tarBytes(members: readonly Member[], ending: Uint8Array = Buffer.alloc(2 * BLOCK)): Buffer {
  return Buffer.concat([...members.flatMap(blocksOf), ending])
}

function blocksOf({ name, type = 'file', link = '', content = '', mode, device = [0, 0] }: Member): Buffer[] {
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number): void =>
    void header.write(value.toString(8).padStart(length - 1, '0'), at)
  header.write(name, 0, 100)
  octal(mode ?? (type === 'directory' ? 0o755 : 0o644), 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(Buffer.byteLength(content), 124, 12)
  octal(1_700_000_000, 136, 12)
  header.write('        ', 148)
  header.write(FLAGS[type], 156)
  header.write(link, 157, 100)
  header.write('ustar\u000000', 257)
  octal(device[0], 329, 8)
  octal(device[1], 337, 8)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  const body = Buffer.alloc(Math.ceil(Buffer.byteLength(content) / BLOCK) * BLOCK)
  body.write(content)
  return [header, body]
}
