/** For tests: kernels with modules made of values, archives read back by cpio, and our scripts under two shells. */
import { mkdtemp, mkdir, readFile, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec } from '../../lib/exec.ts'
import { entriesIn, type Item, treeOf } from '../../lib/pack/testing.ts'
import { APPLETS, findBusybox } from './busybox.ts'
import type { SourceTree } from './kernel-modules.ts'
import { SCRIPTS } from './scripts.ts'

/** A file like a kernel module: an ELF with the section that says what it is. */
export function moduleFile(info: readonly string[]): Buffer {
  const body = Buffer.from(`${info.join('\0')}\0`)
  const names = Buffer.from('\0.modinfo\0.shstrtab\0')
  const header = Buffer.alloc(64)
  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]).copy(header)
  header.writeUInt16LE(62, 0x12)
  header.writeBigUInt64LE(BigInt(64 + body.length + names.length), 0x28)
  header.writeUInt16LE(64, 0x3a)
  header.writeUInt16LE(3, 0x3c)
  header.writeUInt16LE(2, 0x3e)
  return Buffer.concat([
    header,
    body,
    names,
    section(0, 0, 0),
    section(1, 64, body.length),
    section(10, 64 + body.length, names.length),
    // As the signature of a signed module.
    Buffer.from('~Module signature appended~\n'),
  ])
}

function section(name: number, offset: number, size: number): Buffer {
  const bytes = Buffer.alloc(64)
  bytes.writeUInt32LE(name, 0)
  bytes.writeBigUInt64LE(BigInt(offset), 0x18)
  bytes.writeBigUInt64LE(BigInt(size), 0x20)
  return bytes
}

/** A tree of these; `lib` leads to `usr/lib`, as in most distributions. */
export function sourceTree(files: Readonly<Record<string, string | Buffer>>, dir: string): SourceTree {
  const directories = new Set(
    Object.keys(files).flatMap(path => path.split('/').map((_, n, all) => all.slice(0, n).join('/'))),
  )
  const items: Item[] = [
    ...[...directories].filter(Boolean).map(path => ({ path, type: 'directory' as const })),
    ...Object.entries(files).map(([path, content]) =>
      typeof content === 'string' && content.startsWith('-> ')
        ? { path, type: 'symlink' as const, target: content.slice(3) }
        : { path, type: 'file' as const, content },
    ),
  ]
  const tree = treeOf(items, dir)
  const byPath = new Map(tree.entries.map(entry => [entry.path, entry]))
  const resolve = (path: string): string => {
    const plain = path.replace(/^lib\//, 'usr/lib/')
    const entry = byPath.get(plain)
    return entry?.type === 'symlink' ? resolve(entry.target.slice(1)) : plain
  }
  return { ...tree, get: path => byPath.get(path), resolve }
}

/** What cpio unpacks of an initramfs: path → content of files, → target of links, and the rest by type. */
export async function unpacked(archive: Buffer): Promise<Map<string, string>> {
  const dir = await mkdtemp(join(tmpdir(), 'muster-unpacked-'))
  const tool = archive.readUInt32BE(0) === 0x28b52ffd ? 'zstd' : 'gzip'
  const { stdout } = await exec(tool, ['-dc'], { input: archive })
  await exec('cpio', ['--extract', '--quiet', '--no-absolute-filenames'], { cwd: dir, input: stdout })
  const found = new Map<string, string>()
  for (const entry of await entriesIn(dir)) {
    const content = entry.type === 'file' ? await readFile(join(dir, entry.path), 'latin1') : undefined
    found.set(entry.path, content ?? (entry.type === 'symlink' ? `-> ${entry.target}` : entry.type))
  }
  await exec('rm', ['-r', dir])
  return found
}

/** The shells our scripts must run in: that of the initramfs, and another that knows nothing beyond POSIX. */
export const SHELLS = ['busybox', 'dash'] as const

/** What our scripts call that a test must never do to the machine it runs on; a test may put something else in its place. */
const FORBIDDEN =
  'reboot halt poweroff mount umount switch_root pivot_root modprobe insmod rmmod udhcpc ip hostname sysctl'
    .split(' ')
    .map(name => `${name}() { echo "a test called ${name} $*"; exit 99; }\n`)
    .join('')

/** A place to run parts of our scripts: the programs are those of busybox, as in the initramfs. */
export class Bench {
  readonly dir: string
  readonly #shell: (typeof SHELLS)[number]
  readonly #bin: string

  private constructor(dir: string, shell: (typeof SHELLS)[number], bin: string) {
    this.dir = dir
    this.#shell = shell
    this.#bin = bin
  }

  static async create(shell: (typeof SHELLS)[number]): Promise<Bench> {
    const dir = await mkdtemp(join(tmpdir(), 'muster-initramfs-'))
    const busybox = await findBusybox('amd64')
    const bin = join(dir, 'bin')
    await mkdir(bin)
    for (const name of APPLETS) await symlink(busybox, join(bin, name))
    for (const name of ['run', 'work', 'sys']) await mkdir(join(dir, name))
    return new Bench(dir, shell, bin)
  }

  /** Runs commands after the named parts were read, as strictly as an attempt does. */
  async run(
    parts: string,
    commands: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly output: string; readonly status: number }> {
    const sources = parts.split(' ').map(part => `. ${SCRIPTS}/${part}.sh\n`)
    const argv = this.#shell === 'busybox' ? ['busybox', 'sh'] : ['dash']
    const { stdout, exitCode } = await exec(
      'env',
      [...argv, '-c', `set -eu\n${sources.join('')}${FORBIDDEN}export PATH=${this.#bin}\n${commands}`],
      {
        env: {
          SCRIPTS,
          // This machine may be slow.
          ANSWER_WITHIN: '60',
          RUN: `${this.dir}/run`,
          WORK: `${this.dir}/work`,
          SYS: `${this.dir}/sys`,
          IMAGE: `${this.dir}/image`,
          ...env,
        },
        allow: Array.from({ length: 255 }, (_, status) => status + 1),
        timeout: 120_000,
      },
    )
    return { output: stdout.toString(), status: exitCode }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await exec('rm', ['-r', this.dir])
  }
}
