import { decodeText, invalidArchive, MAX_NAME, quoteName } from './member.ts'

/** What a pax header can say about a member that the header proper cannot. */
export interface PaxFields {
  readonly path?: string
  readonly linkpath?: string
  readonly size?: number
  readonly uid?: number
  readonly gid?: number
  readonly mtime?: number
  /** Name → value in base64. */
  readonly xattrs?: Readonly<Record<string, string>>
}

const XATTR = 'SCHILY.xattr.'

/**
 * Reads the records `LENGTH KEY=VALUE\n` of a pax header. Where tools read them in different ways (a key twice, an
 * empty value) they are refused: what is checked has to be what is extracted.
 */
export function parsePax(content: Buffer): PaxFields {
  const fields: Record<string, string | number> = {}
  const xattrs = new Map<string, string>()
  for (const [key, value] of records(content)) {
    if (key.startsWith('GNU.sparse.'))
      throw invalidArchive('the archive holds sparse files, which Muster does not read')
    if (key.startsWith(XATTR)) {
      xattrs.set(decodeXattr(key.slice(XATTR.length)), value.toString('base64'))
    } else if (isField(key)) {
      if (Object.hasOwn(fields, key)) throw invalidArchive(`a pax header of the archive says ${key} twice`)
      fields[key] = FIELDS[key](value) ?? refuse(key, value)
    }
  }
  return { ...fields, ...(xattrs.size > 0 && { xattrs: Object.fromEntries(xattrs) }) }
}

const isField = (key: string): key is keyof typeof FIELDS => Object.hasOwn(FIELDS, key)

const FIELDS = {
  path: parseName,
  linkpath: parseName,
  size: parseCount,
  uid: parseCount,
  gid: parseCount,
  mtime: parseTime,
} as const satisfies Partial<Record<keyof PaxFields, (value: Buffer) => string | number | undefined>>

function refuse(key: string, value: Buffer): never {
  const shown = quoteName(value.subarray(0, 64).toString('latin1'))
  throw invalidArchive(`a pax header of the archive says ${key}=${shown}${value.length > 64 ? '…' : ''}`)
}

function parseName(value: Buffer): string | undefined {
  return value.length === 0 || value.length > MAX_NAME ? undefined : decodeText(value)
}

function parseCount(value: Buffer): number | undefined {
  const text = value.toString('latin1')
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
}

/** Whole seconds, rounded down: read as text, for a number would round 1.9999999999 up. */
function parseTime(value: Buffer): number | undefined {
  const found = /^(-?\d{1,15})(\.\d{0,32})?$/.exec(value.toString('latin1'))
  if (found === null) return undefined
  const [text, whole = '', fraction = ''] = found
  return Number(whole) - (text.startsWith('-') && /[1-9]/.test(fraction) ? 1 : 0)
}

function* records(content: Buffer): Generator<[key: string, value: Buffer]> {
  for (let start = 0; start < content.length;) {
    const digits = /^([1-9]\d{0,6}) /.exec(content.toString('latin1', start, start + 8))?.[1] ?? broken()
    const end = start + Number(digits)
    const record = content.subarray(start + digits.length + 1, end)
    const equals = record.indexOf('=')
    if (end > content.length || record.at(-1) !== NEWLINE || equals < 1) broken()
    yield [decodeText(record.subarray(0, equals)) ?? broken(), record.subarray(equals + 1, -1)]
    start = end
  }
}

function broken(): never {
  throw invalidArchive('a pax header of the archive is damaged')
}

const NEWLINE = 0x0a

/** One record, its own length included in the length it begins with. */
export function formatPax(key: string, value: string | Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')])
  let length = rest.length
  while (length !== rest.length + String(length).length) length = rest.length + String(length).length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

export const formatXattr = (name: string, base64: string): Buffer =>
  formatPax(XATTR + encodeXattr(name), Buffer.from(base64, 'base64'))

// A key ends at the first '='. GNU tar writes it so, and has to write '%' so as well.
const encodeXattr = (name: string): string => name.replaceAll('%', '%25').replaceAll('=', '%3D')
const decodeXattr = (name: string): string => name.replaceAll('%3D', '=').replaceAll('%25', '%')
