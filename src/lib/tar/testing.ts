/** Archives for tests, byte by byte: also those no tool would write. */
import { readTarHeaders } from './read.ts'
import type { TarMember } from './member.ts'

export interface RawHeader {
  readonly name?: string | Buffer
  readonly flag?: string
  /** Numbers are written in octal, texts and bytes as they are. */
  readonly mode?: number | string
  readonly uid?: number | string | Buffer
  readonly size?: number | string | Buffer
  readonly mtime?: number | string | Buffer
  readonly link?: string | Buffer
  readonly magic?: string
  readonly prefix?: string
  /** The last bytes of the header, where star signs. */
  readonly trailer?: string
  /** Instead of the right one. */
  readonly checksum?: string
}

/** A header, the content behind it and zeros up to the next block. The size is that of the content unless given. */
export function member(header: RawHeader, content: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(content)
  const block = Buffer.alloc(512)
  const put = (start: number, width: number, value: number | string | Buffer): void => {
    const raw = typeof value === 'number' ? `${value.toString(8).padStart(width - 1, '0')}\0` : value
    Buffer.from(raw).copy(block, start)
  }
  put(0, 100, header.name ?? 'file')
  put(100, 8, header.mode ?? 0o644)
  put(108, 8, header.uid ?? 0)
  put(116, 8, 0)
  put(124, 12, header.size ?? bytes.length)
  put(136, 12, header.mtime ?? 0)
  put(148, 8, '        ')
  put(156, 1, header.flag ?? '0')
  put(157, 100, header.link ?? '')
  put(257, 8, header.magic ?? 'ustar\x0000')
  put(345, 155, header.prefix ?? '')
  put(508, 4, header.trailer ?? '')
  const sum = block.reduce((total, byte) => total + byte, 0)
  put(148, 8, header.checksum ?? `${sum.toString(8).padStart(6, '0')}\0 `)
  return Buffer.concat([block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

export const GNU = 'ustar  \0'
export const END = Buffer.alloc(1024)

/** The record `LENGTH KEY=VALUE\n`; short ones only. */
export function record(key: string, value: string | Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')])
  const digits = rest.length < 9 ? 1 : rest.length < 98 ? 2 : 3
  return Buffer.concat([Buffer.from(String(rest.length + digits)), rest])
}

export const pax = (...records: readonly Buffer[]): Buffer => member({ flag: 'x' }, Buffer.concat(records))

export async function* streamOf(archive: Buffer, chunkLength = 65_536): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < archive.length; start += chunkLength) yield archive.subarray(start, start + chunkLength)
}

export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<TarMember[]> {
  const members: TarMember[] = []
  for await (const member of readTarHeaders(stream)) members.push(member)
  return members
}

export const membersOf = (archive: Buffer): Promise<TarMember[]> => readAll(streamOf(archive))
