import { Unknown, linesOf } from '../found.ts'
import type { Subject } from '../subject.ts'
import { type Observe, gather, readText, shell, targetOf, timeoutOf, trouble, unknown } from './look.ts'

export const observeMount: Observe = async (subject, check) => {
  const path = targetOf(check)
  const table = await readText(subject, '/proc/self/mountinfo')
  if (typeof table !== 'string') return unknown(check, table ?? new Unknown('there is no /proc/self/mountinfo'))
  // Of several mounts on one place the last covers the others.
  const mount = linesOf(table)
    .flatMap(line => parseMount(line) ?? [])
    .findLast(({ mountpoint }) => mountpoint === path)
  if (mount === undefined) return { exists: false }
  const { opts, vfsOpts, source, filesystem } = mount
  return gather(check, {
    exists: true,
    opts,
    'vfs-opts': vfsOpts,
    source,
    filesystem,
    usage: () => usageOf(subject, path, timeoutOf(check, TEN_SECONDS)),
  })
}

const TEN_SECONDS = 10_000

interface Mount {
  readonly mountpoint: string
  readonly opts: readonly string[]
  readonly vfsOpts: readonly string[]
  readonly source: string
  readonly filesystem: string
}

/** 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue (proc(5)) */
function parseMount(line: string): Mount | undefined {
  const [left = '', right] = line.split(' - ', 2)
  const [, , , , mountpoint, opts = ''] = left.split(' ')
  if (mountpoint === undefined || right === undefined) return undefined
  const [filesystem = '', source = '', vfsOpts = ''] = right.split(' ')
  return {
    mountpoint: unescape(mountpoint),
    opts: opts.split(','),
    vfsOpts: vfsOpts.split(','),
    source: unescape(source),
    filesystem,
  }
}

/** Blanks and the like are octal numbers there. */
const unescape = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 8)))

/** Percent of its blocks. */
async function usageOf(subject: Subject, path: string, timeout: number): Promise<number | Unknown> {
  const result = await shell(subject, 'df -P "$1"', [path], { timeout })
  const percent = /\s(\d+)%\s/.exec(linesOf(result.stdout.toString('utf8')).at(-1) ?? '')?.[1]
  if (result.exitCode !== 0) return trouble(result, 'df')
  return percent === undefined ? new Unknown('df does not say how full it is') : Number(percent)
}
