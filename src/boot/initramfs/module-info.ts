import { promisify } from 'node:util'
import { gunzip, zstdDecompress } from 'node:zlib'
import { exec } from '../../lib/exec.ts'
import { readElf } from './elf.ts'

/** What a module says about itself, in its .modinfo section: what depmod would collect. */
export interface ModuleInfo {
  readonly depends: readonly string[]
  /** Modules or aliases that are good to have loaded as well. */
  readonly softdeps: readonly string[]
  readonly aliases: readonly string[]
  readonly firmware: readonly string[]
}

export function moduleInfo(module: Buffer): ModuleInfo {
  const lines = readElf(module)?.section('.modinfo')?.toString('latin1').split('\0') ?? []
  const valuesOf = (key: string): string[] =>
    lines.filter(line => line.startsWith(`${key}=`)).map(line => line.slice(key.length + 1))
  return {
    depends: valuesOf('depends').flatMap(words),
    softdeps: valuesOf('softdep').flatMap(value => words(value).filter(word => !/^(?:pre|post):$/.test(word))),
    aliases: valuesOf('alias').filter(alias => /^[\x21-\x7e]+$/.test(alias)),
    firmware: valuesOf('firmware').filter(path => !path.startsWith('/') && !path.split('/').includes('..')),
  }
}

const words = (value: string): string[] => value.split(/[\s,]+/).filter(Boolean)

export const MODULE_SUFFIX = /\.ko(?:\.(?:gz|xz|zst))?$/

/** busybox loads modules as they are; and what is compressed twice only gets larger. */
export async function uncompressed(path: string, bytes: Buffer): Promise<Buffer> {
  if (path.endsWith('.gz')) return promisify(gunzip)(bytes, LIMIT)
  if (path.endsWith('.zst')) return promisify(zstdDecompress)(bytes, LIMIT)
  if (path.endsWith('.xz')) return (await exec('xz', ['-dc', '--memlimit=256MiB'], { input: bytes })).stdout
  return bytes
}

/** The largest modules of distributions have a tenth of that. */
const LIMIT = { maxOutputLength: 256 * 1024 * 1024 }
