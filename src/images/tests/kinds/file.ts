import { Output, Unknown } from '../found.ts'
import type { Subject } from '../subject.ts'
import { type Observe, asks, gather, shell, targetOf, trouble } from './look.ts'

/** A file as it is, links not followed; its contents and checksums are those of what it leads to. */
export const observeFile: Observe = async (subject, check) => {
  const path = targetOf(check)
  const stat = await statOf(subject, path)
  if (stat === undefined) return { exists: false }
  const detail = (name: keyof Stat): unknown => (stat instanceof Unknown ? stat : stat[name])
  const contents = asks(check, 'contents', 'contains') ? await contentsOf(subject, path) : undefined
  return gather(check, {
    exists: true,
    filetype: detail('filetype'),
    mode: detail('mode'),
    owner: detail('owner'),
    uid: detail('uid'),
    group: detail('group'),
    gid: detail('gid'),
    size: detail('size'),
    'linked-to': () => linkOf(subject, path),
    contents,
    contains: contents,
    md5: () => checksum(subject, 'md5sum', path),
    sha256: () => checksum(subject, 'sha256sum', path),
    sha512: () => checksum(subject, 'sha512sum', path),
  })
}

interface Stat {
  readonly filetype: string
  readonly mode: string
  readonly owner: string
  readonly uid: number
  readonly group: string
  readonly gid: number
  readonly size: number
}

const STAT = '[ -e "$1" ] || [ -L "$1" ] || exit 3; stat -c "%f %s %u %g %U %G" "$1"'

/** Nothing where there is no such file. */
async function statOf(subject: Subject, path: string): Promise<Stat | Unknown | undefined> {
  const result = await shell(subject, STAT, [path])
  if (result.exitCode === 3) return undefined
  if (result.exitCode !== 0) return trouble(result, 'stat')
  const [raw = '', size = '', uid = '', gid = '', owner = uid, group = gid] = result.stdout
    .toString('utf8')
    .trim()
    .split(' ')
  const bits = Number.parseInt(raw, 16)
  if (!Number.isInteger(bits)) return new Unknown('stat says what nobody understands')
  return {
    filetype: TYPES[bits & 0o170000] ?? 'unknown',
    mode: (bits & 0o7777).toString(8).padStart(4, '0'),
    // An owner without a name.
    owner: owner === 'UNKNOWN' ? uid : owner,
    group: group === 'UNKNOWN' ? gid : group,
    uid: Number(uid),
    gid: Number(gid),
    size: Number(size),
  }
}

const TYPES: Readonly<Record<number, string>> = {
  0o100000: 'file',
  0o120000: 'symlink',
  0o040000: 'directory',
  0o140000: 'socket',
  0o010000: 'pipe',
  0o020000: 'character-device',
  0o060000: 'block-device',
}

async function contentsOf(subject: Subject, path: string): Promise<Output | Unknown> {
  const result = await shell(subject, 'cat < "$1"', [path])
  return result.exitCode === 0 ? new Output(result.stdout) : trouble(result, 'cat')
}

async function linkOf(subject: Subject, path: string): Promise<string | Unknown> {
  const result = await shell(subject, '[ -L "$1" ] || exit 3; readlink "$1"', [path])
  if (result.exitCode === 3) return new Unknown('is no symbolic link')
  return result.exitCode === 0 ? result.stdout.toString('utf8').replace(/\n$/, '') : trouble(result, 'readlink')
}

async function checksum(subject: Subject, tool: string, path: string): Promise<string | Unknown> {
  const result = await shell(subject, `${tool} < "$1"`, [path], { timeout: 60_000 })
  const [sum = ''] = result.stdout.toString('utf8').split(' ')
  return result.exitCode === 0 ? sum : trouble(result, tool)
}
