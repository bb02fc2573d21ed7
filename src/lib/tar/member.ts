import { MusterError } from '../errors.ts'

export type TarType = 'file' | 'directory' | 'symlink' | 'hardlink' | 'char' | 'block' | 'fifo' | 'other'

/** One header of an archive with everything said about it in the headers before it. */
export interface TarMember {
  /** As the archive has it: './a/b', '/a/b', 'dir/'. */
  readonly name: string
  readonly type: TarType
  /** Bytes of content that follow. */
  readonly size: number
  /** 0o7777 at most. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Whole seconds since 1970. */
  readonly mtime: number
  /** Where links point to, '' for everything else. */
  readonly linkName: string
  /** Extended attributes: name → value in base64. */
  readonly xattrs?: Readonly<Record<string, string>>
}

/** Headers stand in blocks of this length, content is filled up to it. */
export const BLOCK = 512

/** As long as a path may be on Linux. */
export const MAX_NAME = 4096

export const invalidArchive = (message: string, cause?: unknown): MusterError =>
  new MusterError('ARCHIVE_INVALID', message, { cause })

/** A name for people to read: whoever made the archive must not control their terminal with it. */
export const quoteName = (name: string): string =>
  JSON.stringify(name).replace(/[\u007f-\u009f]/g, char => `\\u00${char.charCodeAt(0).toString(16)}`)

/** Text exactly as its bytes have it: nothing replaced, and no mark at its beginning dropped. */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
