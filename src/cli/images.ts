import { join, resolve } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import { type ImageStore, openImageStore, peekImageStore } from '../images/store/store.ts'
import type { Io } from './io.ts'

export interface DataOption {
  readonly data?: string
}

const DEFAULT_DATA = '/var/lib/muster'

export const dataDir = (io: Io, options: DataOption): string =>
  resolve(io.cwd, options.data ?? io.env['MUSTER_DATA'] ?? DEFAULT_DATA)

/** The images of a data directory, which a server may be using at the same time. */
export const imageStore = (io: Io, options: DataOption): Promise<ImageStore> => usable(io, options, openImageStore)

/** The same for commands that only read: they make nothing, whatever the name of the directory. */
export const imagesToRead = (io: Io, options: DataOption): Promise<ImageStore> => usable(io, options, peekImageStore)

async function usable(io: Io, options: DataOption, open: (dir: string) => Promise<ImageStore>): Promise<ImageStore> {
  const dir = dataDir(io, options)
  try {
    return await open(join(dir, 'images'))
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
