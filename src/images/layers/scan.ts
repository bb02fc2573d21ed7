import { createHash } from 'node:crypto'
import { closeSync, lstatSync, lutimesSync, openSync, readSync, readdirSync, readlinkSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { MusterError } from '../../lib/errors.ts'
import { exec } from '../../lib/exec.ts'
import { type Entry, type FileEntry, comparePaths } from '../../lib/tree/entry.ts'

/** What a directory holds, and what it takes away from the layers below it. */
export interface LayerContent {
  /** In the order of a tree. */
  readonly entries: readonly Entry[]
  /** Paths that are gone: overlayfs notes them as character devices 0:0. */
  readonly gone: readonly string[]
  /** Directories whose content replaces what lies below instead of joining it. */
  readonly opaque: readonly string[]
}

const READ = 1 << 20
const BREATHE_EVERY = 64

/**
 * Lists a directory with everything an image keeps: types, modes, owners, times, digests, attributes. Nothing is newer
 * than `time`: what the build wrote gets the time of its inputs, in the list and on disk, so that two builds agree.
 */
export async function scanLayer(root: string, time: number, signal?: AbortSignal): Promise<LayerContent> {
  const xattrs = await readXattrs(root)
  const entries: Entry[] = []
  const gone: string[] = []
  const linked = new Map<bigint, FileEntry>()
  const buffer = Buffer.allocUnsafe(READ)

  const add = (path: string): 'directory' | undefined => {
    const full = path === '' ? root : `${root}/${path}`
    const stat = lstatSync(full, { bigint: true })
    if (stat.isCharacterDevice() && stat.rdev === 0n) {
      gone.push(path)
      return undefined
    }
    const mtime = Math.max(0, Math.min(time, Number(stat.mtimeNs / 1_000_000_000n)))
    if (stat.mtimeNs > BigInt(time) * 1_000_000_000n) lutimesSync(full, time, time)
    const attributes = keptAttributes(xattrs.get(path))
    const common = {
      path,
      mode: Number(stat.mode & 0o7777n),
      uid: Number(stat.uid),
      gid: Number(stat.gid),
      mtime,
      ...(attributes && { xattrs: attributes }),
    }
    if (stat.isDirectory()) entries.push({ ...common, type: 'directory' })
    else if (stat.isSymbolicLink())
      entries.push({ ...common, mode: 0o777, type: 'symlink', target: readlinkSync(full) })
    else if (stat.isFile()) {
      const first = linked.get(stat.ino)
      const sha256 = first?.sha256 ?? digestOf(full, buffer)
      const file: FileEntry = {
        ...common,
        type: 'file',
        size: Number(stat.size),
        sha256,
        ...(first && { linkTo: first.path }),
      }
      if (stat.nlink > 1n && first === undefined) linked.set(stat.ino, file)
      entries.push(file)
    } else {
      const type = stat.isCharacterDevice()
        ? 'char'
        : stat.isBlockDevice()
          ? 'block'
          : stat.isFIFO()
            ? 'fifo'
            : 'socket'
      const rdev = stat.rdev
      entries.push({
        ...common,
        type,
        major: Number((rdev >> 8n) & 0xfffn),
        minor: Number((rdev & 0xffn) | ((rdev >> 12n) & 0xfff00n)),
      })
    }
    return stat.isDirectory() ? 'directory' : undefined
  }

  let seen = 0
  const walk = async (path: string): Promise<void> => {
    if (++seen % BREATHE_EVERY === 0) await setImmediate()
    signal?.throwIfAborted()
    if (add(path) !== 'directory') return
    for (const name of namesIn(path === '' ? root : `${root}/${path}`, path)) {
      const child = path === '' ? name : `${path}/${name}`
      await walk(child)
    }
  }
  await walk('')
  const opaque = [...xattrs].filter(([, names]) => names[OPAQUE] !== undefined).map(([path]) => path)
  return {
    entries: entries.sort((a, b) => comparePaths(a.path, b.path)).map(firstNameFirst()),
    gone,
    opaque: opaque.sort(),
  }
}

/** Of several names of one file the first in the order of the tree is the file, the others link to it. */
function firstNameFirst(): (entry: Entry) => Entry {
  const first = new Map<string, string>()
  return entry => {
    if (entry.type !== 'file') return entry
    const group = entry.linkTo ?? entry.path
    const known = first.get(group)
    first.set(group, known ?? entry.path)
    const { linkTo: _, ...file } = entry satisfies FileEntry
    return known === undefined ? file : { ...file, linkTo: known }
  }
}

function namesIn(dir: string, path: string): string[] {
  return readdirSync(dir, { encoding: 'buffer' }).map(raw => {
    const name = raw.toString('utf8')
    if (!Buffer.from(name).equals(raw))
      throw new MusterError('BUILD_FAILED', `/${path}/${name}: the name is not UTF-8`, {
        hint: 'rename or remove it in a step',
      })
    return name
  })
}

function digestOf(file: string, buffer: Buffer): string {
  const hash = createHash('sha256')
  const descriptor = openSync(file, 'r')
  try {
    for (;;) {
      const length = readSync(descriptor, buffer, 0, READ, null)
      if (length === 0) return hash.digest('hex')
      hash.update(buffer.subarray(0, length))
    }
  } finally {
    closeSync(descriptor)
  }
}

const OPAQUE = 'trusted.overlay.opaque'

/** Capabilities and users' own attributes belong to an image; labels and overlay's notes to the machine that built it. */
function keptAttributes(all: Readonly<Record<string, string>> | undefined): Record<string, string> | undefined {
  const kept = Object.entries(all ?? {}).filter(([name]) => name === 'security.capability' || name.startsWith('user.'))
  return kept.length === 0 ? undefined : Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Node cannot read extended attributes: getfattr does, for the whole tree at once. */
async function readXattrs(root: string): Promise<Map<string, Record<string, string>>> {
  const args = ['--recursive', '--physical', '--no-dereference', '--match=-', '--encoding=base64', '--dump', '.']
  const { stdout } = await exec('getfattr', args, { cwd: root, timeout: 0, env: { LC_ALL: 'C' } })
  const found = new Map<string, Record<string, string>>()
  let current: Record<string, string> = {}
  for (const line of stdout.toString('latin1').split('\n')) {
    if (line.startsWith('# file: ')) {
      const path = unescape(line.slice('# file: '.length)).replace(/^\.(\/|$)/, '')
      found.set(path, (current = {}))
    } else {
      const [, name, value] = /^([^=]+)=0s(.*)$/.exec(line) ?? []
      if (name !== undefined && value !== undefined) current[name] = value
    }
  }
  return found
}

/** getfattr writes unusual bytes as \ooo. */
const unescape = (text: string): string =>
  Buffer.from(
    text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    'latin1',
  ).toString('utf8')
