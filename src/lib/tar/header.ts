import type { Entry } from '../tree/entry.ts'
import { paddingOf } from './bytes.ts'
import { BLOCK } from './member.ts'
import { formatOctal } from './numbers.ts'
import { formatPax, formatXattr } from './pax.ts'

const FLAGS = { file: '0', symlink: '2', char: '3', block: '4', directory: '5', fifo: '6', socket: undefined } as const
const HARD_LINK = '1'
const PAX = 'x'

/**
 * All blocks of an entry that stand before its content: its header, and ahead of it a pax header with what does not fit
 * into that one. Nothing for a socket, which tar cannot hold.
 */
export function formatHeaders(entry: Entry): Buffer | undefined {
  const isHardLink = entry.type === 'file' && entry.linkTo !== undefined
  const flag = isHardLink ? HARD_LINK : FLAGS[entry.type]
  if (flag === undefined) return undefined

  const records: Buffer[] = []
  const textOrRecord = (key: string, value: string, limit: number): string => {
    if (fits(value, limit)) return value
    records.push(formatPax(key, value))
    return ''
  }
  const numberOrRecord = (key: string, value: number, width: number): string => {
    const octal = formatOctal(value, width)
    if (octal === undefined) records.push(formatPax(key, String(value)))
    return octal ?? ''
  }
  const path = entry.type === 'directory' ? `${entry.path || '.'}/` : entry.path
  const { prefix, name } = splitName(path)
  const header = formatBlock({
    name: textOrRecord('path', name, NAME_LENGTH) || PLACEHOLDER,
    prefix,
    mode: entry.mode,
    uid: numberOrRecord('uid', entry.uid, 8),
    gid: numberOrRecord('gid', entry.gid, 8),
    size: numberOrRecord('size', entry.type === 'file' && !isHardLink ? entry.size : 0, 12),
    mtime: numberOrRecord('mtime', entry.mtime, 12),
    flag,
    link: textOrRecord('linkpath', linkOf(entry), NAME_LENGTH),
    major: 'major' in entry ? entry.major : 0,
    minor: 'minor' in entry ? entry.minor : 0,
  })
  // The attributes belong to the file, whose first name has told them already.
  if (!isHardLink) for (const [key, value] of sorted(entry.xattrs)) records.push(formatXattr(key, value))
  return records.length === 0 ? header : Buffer.concat([formatPaxBlocks(Buffer.concat(records)), header])
}

const NAME_LENGTH = 100
const PREFIX_LENGTH = 155

/** What those see who do not know pax. */
const PLACEHOLDER = 'PaxHeader'

function linkOf(entry: Entry): string {
  if (entry.type === 'symlink') return entry.target
  return entry.type === 'file' ? (entry.linkTo ?? '') : ''
}

const sorted = (xattrs: Entry['xattrs']): [string, string][] =>
  Object.entries(xattrs ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))

/** ustar leaves open how other letters are written, so pax has to say those. */
// oxlint-disable-next-line no-control-regex -- all of ASCII is meant
const fits = (text: string, limit: number): boolean => text.length <= limit && /^[\x01-\x7f]*$/.test(text)

/** ustar takes a long name in two parts, divided at a slash; one that cannot be divided stays whole, and too long. */
function splitName(path: string): { prefix: string; name: string } {
  const whole = { prefix: '', name: path }
  if (fits(path, NAME_LENGTH) || !fits(path, PREFIX_LENGTH + 1 + NAME_LENGTH)) return whole
  const slash = path.indexOf('/', path.length - 1 - NAME_LENGTH)
  const isPossible = slash > 0 && slash <= PREFIX_LENGTH && slash < path.length - 1
  return isPossible ? { prefix: path.slice(0, slash), name: path.slice(slash + 1) } : whole
}

function formatPaxBlocks(content: Buffer): Buffer {
  const size = formatOctal(content.length, 12) ?? ''
  const header = formatBlock({ name: PLACEHOLDER, mode: 0o644, size, flag: PAX })
  return Buffer.concat([header, content, Buffer.alloc(paddingOf(content.length))])
}

interface Fields {
  readonly name: string
  readonly prefix?: string
  readonly mode: number
  /** Numbers come in octal; an empty one is 0. */
  readonly uid?: string
  readonly gid?: string
  readonly size: string
  readonly mtime?: string
  readonly flag: string
  readonly link?: string
  readonly major?: number
  readonly minor?: number
}

function formatBlock(fields: Fields): Buffer {
  const block = Buffer.alloc(BLOCK)
  block.write(fields.name, 0)
  block.write(octal(fields.mode), 100)
  block.write(fields.uid || octal(0), 108)
  block.write(fields.gid || octal(0), 116)
  block.write(fields.size || octal(0, 12), 124)
  block.write(fields.mtime || octal(0, 12), 136)
  block.write(fields.flag, 156)
  block.write(fields.link ?? '', 157)
  block.write('ustar\x0000', 257)
  block.write(octal(fields.major ?? 0), 329)
  block.write(octal(fields.minor ?? 0), 337)
  block.write(fields.prefix ?? '', 345)
  block.write(`${octal(checksumOf(block), 7)} `, 148)
  return block
}

function octal(value: number, width = 8): string {
  const digits = formatOctal(value, width)
  if (digits === undefined) throw new RangeError(`${value} does not fit into a tar header`)
  return digits
}

/** The sum of all bytes, those of the checksum itself counted as spaces. */
export function checksumOf(block: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < BLOCK; at++) if (at < 148 || at >= 156) sum += block[at] ?? 0
  return sum
}
