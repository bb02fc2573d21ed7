import { MusterError } from '../errors.ts'

/**
 * The header of one name in the newc format: "070701", thirteen numbers of eight hex digits, the name with a NUL, and
 * zeros up to a multiple of four. See Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
 */
export interface Header {
  readonly name: string
  readonly inode: number
  /** With the bits of the file type. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly links: number
  readonly mtime: number
  readonly size: number
  /** Of a device. */
  readonly major: number
  readonly minor: number
}

export function encodeHeader(header: Header): Buffer {
  const name = Buffer.byteLength(header.name) + 1
  if (header.size > MAX_FIELD)
    throw new MusterError('IMAGE_TOO_LARGE', `${header.name} has 4 GiB or more: too large for an initramfs`)
  const fields = [
    header.inode,
    header.mode,
    header.uid,
    header.gid,
    header.links,
    Math.min(Math.max(header.mtime, 0), MAX_FIELD),
    header.size,
    0,
    0,
    header.major,
    header.minor,
    name,
    0,
  ]
  const bytes = Buffer.alloc(paddedToFour(FIXED + name))
  bytes.write('070701' + fields.map(hex).join(''), 'latin1')
  bytes.write(header.name, FIXED)
  return bytes
}

export const headerLength = (name: string): number => paddedToFour(FIXED + Buffer.byteLength(name) + 1)

export const paddedToFour = (length: number): number => Math.ceil(length / 4) * 4

const FIXED = 110
const MAX_FIELD = 0xffffffff

const hex = (value: number): string => value.toString(16).padStart(8, '0')

/** Ends an archive. The kernel forgets the names of files with several names here. */
export const TRAILER = encodeHeader({
  name: 'TRAILER!!!',
  inode: 0,
  mode: 0,
  uid: 0,
  gid: 0,
  links: 1,
  mtime: 0,
  size: 0,
  major: 0,
  minor: 0,
})
