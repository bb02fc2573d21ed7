import { ByteStream, isZero } from './bytes.ts'
import { checksumOf } from './header.ts'
import { BLOCK, decodeText, invalidArchive, MAX_NAME, quoteName, type TarMember, type TarType } from './member.ts'
import { parseNumber } from './numbers.ts'
import { parsePax, type PaxFields } from './pax.ts'

const MAX_PAX = 1024 * 1024
/** The highest stands for "leave the owner as it is". */
const MAX_ID = 0xffff_fffe

/** What the headers before a member's own say about it. */
interface Extension {
  readonly pax?: PaxFields
  readonly longName?: string
  readonly longLink?: string
}

export interface TarOptions {
  /** Layers of container images may lack the two blocks of zeros; their digest tells whether they are whole. */
  readonly mayJustEnd?: boolean
}

/**
 * The members of a tar archive in ustar, GNU or pax format, their content skipped. Whatever the tools that may extract
 * it read in different ways is refused, so that what is checked here is what gets extracted there.
 */
export async function* readTarHeaders(
  stream: AsyncIterable<Uint8Array>,
  options: TarOptions = {},
): AsyncGenerator<TarMember> {
  const bytes = new ByteStream(stream)
  try {
    let defaults: PaxFields = {}
    let extension: Extension = {}
    for (;;) {
      if (options.mayJustEnd === true && isEmpty(extension) && (await bytes.isAtEnd())) return
      const header = parseHeader(await bytes.take(BLOCK), bytes.position - BLOCK)
      if (header === 'end') {
        if (!isEmpty(extension)) throw invalidArchive('the archive ends in the middle of a member')
        if (!isZero(await bytes.take(BLOCK))) throw invalidArchive('the archive has a lone block of zeros in it')
        await bytes.expectZerosToTheEnd()
        return
      }
      if (header.flag === 'g') {
        if (!isEmpty(extension)) throw invalidArchive('the archive has a global pax header in the middle of a member')
        defaults = { ...defaults, ...parseGlobal(await takeContent(bytes, header, MAX_PAX)) }
      } else if (isExtension(header.flag)) {
        extension = extend(extension, await readExtension(bytes, header, header.flag))
      } else {
        const member = compose(header, extension, defaults)
        yield member
        await bytes.skip(member.size)
        await bytes.skipPadding(member.size)
        extension = {}
      }
    }
  } finally {
    await bytes.close()
  }
}

interface Header {
  readonly position: number
  readonly flag: string
  /** Not decoded yet: a longer name may replace it, of which this is a piece. */
  readonly name: Buffer
  readonly linkName: Buffer
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly size: number
  readonly mtime: number
}

function parseHeader(block: Buffer, position: number): Header | 'end' {
  if (isZero(block)) return 'end'
  const number = (what: string, start: number, length: number): number =>
    parseNumber(block.subarray(start, start + length)) ??
    fail(position, `its ${what} is ${quoteName(block.toString('latin1', start, start + length))}`)
  if (number('checksum', 148, 8) !== checksumOf(block)) fail(position, 'its checksum is wrong')
  return {
    position,
    flag: block.toString('latin1', 156, 157),
    name: nameOf(block, position),
    linkName: text(block, 157, 100),
    mode: number('mode', 100, 8) & 0o7777,
    uid: number('owner', 108, 8),
    gid: number('group', 116, 8),
    size: number('size', 124, 12),
    mtime: number('time', 136, 12),
  }
}

/** Only ustar proper has a prefix: GNU keeps times in its place, and older archives nothing. */
function nameOf(block: Buffer, position: number): Buffer {
  const name = text(block, 0, 100)
  const magic = block.toString('latin1', 257, 265)
  if (magic === 'ustar  \0') {
    // Go's tar takes the place for a prefix after all when the times in it make no sense.
    for (const start of [345, 357])
      if (parseNumber(block.subarray(start, start + 12)) === undefined)
        fail(position, 'one of its times makes no sense')
    return name
  }
  const prefix = text(block, 345, 155)
  // Some take a prefix wherever they find one. star has a shorter one, and keeps times behind it.
  const isUstar = magic.startsWith('ustar\0')
  const isStar = block.toString('latin1', 508, 512) === 'tar\0'
  if ((prefix.length > 0 && !isUstar) || (isStar && block[475] !== 0))
    fail(position, 'its name can be read in two ways')
  return prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name])
}

/** Ends at the first NUL, if there is one. */
function text(block: Buffer, start: number, length: number): Buffer {
  const field = block.subarray(start, start + length)
  const end = field.indexOf(0)
  return end === -1 ? field : field.subarray(0, end)
}

function fail(position: number, why: string): never {
  throw invalidArchive(`the archive has a damaged header at byte ${position}: ${why}`)
}

type ExtensionFlag = 'x' | 'L' | 'K'
const isExtension = (flag: string): flag is ExtensionFlag => flag === 'x' || flag === 'L' || flag === 'K'
const isEmpty = (extension: Extension): boolean => Object.keys(extension).length === 0

async function takeContent(bytes: ByteStream, header: Header, limit: number): Promise<Buffer> {
  if (header.size < 0 || header.size > limit)
    fail(header.position, `it announces ${header.size} bytes of its kind, and ${limit} are allowed`)
  const content = await bytes.take(header.size)
  await bytes.skipPadding(header.size)
  return content
}

async function readExtension(bytes: ByteStream, header: Header, flag: ExtensionFlag): Promise<Extension> {
  if (flag === 'x') return { pax: parsePax(await takeContent(bytes, header, MAX_PAX)) }
  const content = await takeContent(bytes, header, MAX_NAME + 1)
  const name = decode(text(content, 0, content.length))
  return flag === 'L' ? { longName: name } : { longLink: name }
}

/** GNU's and pax's ways to say a long name together, or one of them twice, are more than tools agree about. */
function extend(extension: Extension, added: Extension): Extension {
  const both = { ...extension, ...added }
  const isAmbiguous = Object.keys(added).some(key => key in extension) || (both.pax && Object.keys(both).length > 1)
  if (isAmbiguous) throw invalidArchive('the archive describes one member twice')
  return both
}

/** For all members that follow: Go's tar takes no notice of it, so it must not say what or where something is. */
function parseGlobal(content: Buffer): PaxFields {
  const { path, linkpath, size, xattrs, ...harmless } = parsePax(content)
  if ([path, linkpath, size, xattrs].some(field => field !== undefined))
    throw invalidArchive('the archive gives all its members one name, size or extended attribute')
  return harmless
}

function decode(bytes: Buffer): string {
  const decoded = decodeText(bytes)
  if (decoded === undefined || bytes.length > MAX_NAME)
    throw invalidArchive(`${quoteName(bytes.toString('latin1'))}: its name is not UTF-8, or too long`)
  return decoded
}

function compose(header: Header, { pax, longName, longLink }: Extension, defaults: PaxFields): TarMember {
  const name = pax?.path ?? longName ?? decode(header.name)
  const refuse = (why: string): never => {
    throw invalidArchive(`${quoteName(name)}: ${why}`)
  }
  if (header.flag === 'S') refuse('it is a sparse file, which Muster does not read')
  const type = typeOf(header.flag, name)
  const { uid, gid, mtime, size } = { ...header, ...defaults, ...pax }
  for (const id of [uid, gid]) if (id < 0 || id > MAX_ID) refuse(`no owner or group can have the number ${id}`)
  if (size < 0) refuse('its size is negative')
  // Some tools skip such content, others read it as headers.
  if (size > 0 && type !== 'file' && type !== 'other')
    refuse(`a ${type} has no content, but ${size} bytes are announced`)
  if (type === 'file' && name.endsWith('/')) refuse('a file has the name of a directory')
  const linkName =
    type === 'symlink' || type === 'hardlink' ? (pax?.linkpath ?? longLink ?? decode(header.linkName)) : ''
  return { name, type, size, mode: header.mode, uid, gid, mtime, linkName, ...(pax?.xattrs && { xattrs: pax.xattrs }) }
}

function typeOf(flag: string, name: string): TarType {
  // The oldest archives have no other sign of a directory.
  if (flag === '\0' && name.endsWith('/')) return 'directory'
  return TYPES[flag] ?? 'other'
}

const TYPES: Readonly<Record<string, TarType>> = {
  '\0': 'file',
  '0': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '3': 'char',
  '4': 'block',
  '5': 'directory',
  '6': 'fifo',
  '7': 'file',
}
