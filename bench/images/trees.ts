import { createCipheriv } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { exec } from '../../src/lib/exec.ts'

/** A tree to measure on, and what to call it. */
export interface BenchTree {
  readonly path: string
  readonly about: string
}

/** Programs, libraries and texts of this machine, an even sample of about that many bytes; fewer where it has fewer. */
export async function copyOfThisMachine(dir: string, bytes: number): Promise<BenchTree> {
  const path = join(dir, 'tree')
  await mkdir(path)
  const find = ['usr/bin', 'usr/lib', 'usr/share', '-xdev', '(', '-type', 'f', '-o', '-type', 'l', ')']
  const { stdout } = await exec('find', [...find, '-printf', '%s %p\\0'], { cwd: '/', timeout: 0 })
  const all = stdout
    .toString('utf8')
    .split('\0')
    .filter(line => line !== '' && !line.includes('\uFFFD'))
    .map(line => ({ size: Number.parseInt(line, 10), name: line.slice(line.indexOf(' ') + 1) }))
    // A fixed shuffle: the same files in every run.
    .sort((a, b) => crc32(a.name) - crc32(b.name))
  const taken: string[] = []
  let size = 0
  for (const file of all) {
    if (size >= bytes) break
    taken.push(file.name)
    size += file.size
  }
  const copy = ['--pass-through', '--null', '--make-directories', '--preserve-modification-time', '--quiet', path]
  await exec('cpio', copy, { cwd: '/', input: taken.sort().join('\0'), timeout: 0 })
  return { path, about: `${(size / 1e9).toFixed(1)} GB in ${taken.length} files` }
}

const MIB = 2 ** 20
const UNIT = 64 * MIB
/** Of one unit: how large its files are. */
const FILE_SIZES = [32 * MIB, ...Array.from({ length: 16 }, () => MIB), ...Array.from({ length: 256 }, () => MIB / 16)]

/** A tree of any size: units of 64 MiB, made once, of which every file begins with a number of its own. */
export async function madeUpTree(dir: string, bytes: number): Promise<BenchTree> {
  const path = join(dir, 'tree')
  const content = halfCompressible(UNIT)
  let count = 0
  for (let unit = 0; unit * UNIT < bytes; unit++) {
    const folder = join(path, `unit-${unit}`)
    await mkdir(folder, { recursive: true })
    let at = 0
    for (const [number, size] of FILE_SIZES.entries()) {
      content.writeUInt32LE(count++, at)
      await writeFile(join(folder, `file-${number}`), content.subarray(at, at + size))
      at += size
    }
  }
  return { path, about: `${(bytes / 1e9).toFixed(0)} GB in ${count} files` }
}

const STRETCH = 2048

/** Noise and words in turns; the same in every run. */
function halfCompressible(length: number): Buffer {
  const bytes = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(length))
  const words = Buffer.alloc(STRETCH, 'a line of words, as there are many in any tree\n')
  for (let at = STRETCH; at < length; at += 2 * STRETCH) words.copy(bytes, at)
  return bytes
}
