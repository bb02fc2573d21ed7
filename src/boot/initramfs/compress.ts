import { promisify } from 'node:util'
import { constants, gzip, zstdCompress } from 'node:zlib'
import { type SourceTree, textOf } from './kernel-modules.ts'

export type Compression = 'zstd' | 'gzip'

/** What the kernel can unpack, as its configuration says; every kernel has gzip. */
export async function compressionFor(tree: SourceTree, kernel: string): Promise<Compression> {
  for (const path of [`boot/config-${kernel}`, `lib/modules/${kernel}/config`])
    if (/^CONFIG_RD_ZSTD=y$/m.test(await textOf(tree, path))) return 'zstd'
  return 'gzip'
}

/** Some firmware loads an initramfs slowly, and every machine loads it at every boot. */
const ENOUGH = 8_000_000
/** 2 seconds for a stock kernel, and 20 for a tenth less: only where that makes a difference. */
const LEVELS = [12, 19] as const

export async function compressed(archive: Buffer, method: Compression): Promise<Buffer> {
  if (method === 'gzip') return promisify(gzip)(archive, { level: 9 })
  const first = await zstd(archive, LEVELS[0])
  return first.length <= ENOUGH ? first : zstd(archive, LEVELS[1])
}

const zstd = (archive: Buffer, level: number): Promise<Buffer> =>
  promisify(zstdCompress)(archive, {
    params: { [constants.ZSTD_c_compressionLevel]: level },
    pledgedSrcSize: archive.length,
  })
