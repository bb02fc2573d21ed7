import { join, resolve } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import { type ImageStore, openImageStore } from '../images/store/store.ts'
import type { Io } from './io.ts'

export interface DataOption {
  readonly data?: string
}

const DEFAULT_DATA = '/var/lib/muster'

export const dataDir = (io: Io, options: DataOption): string =>
  resolve(io.cwd, options.data ?? io.env['MUSTER_DATA'] ?? DEFAULT_DATA)

/** The images of a data directory, which a server may be using at the same time. */
export async function imageStore(io: Io, options: DataOption): Promise<ImageStore> {
  const dir = dataDir(io, options)
  try {
    return await openImageStore(join(dir, 'images'))
  } catch (error) {
    throw new MusterError('FILE_UNWRITABLE', `the data directory ${dir} cannot be used`, {
      cause: error,
      hint: 'run it as root, or name another with --data DIR',
    })
  }
}

const SHOWN = 'sha256:'.length + 12

/** Enough of a digest to tell images apart, for people. */
export const shortDigest = (digest: string): string => digest.slice(0, SHOWN)
