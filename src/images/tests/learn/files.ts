import type { Facts } from './facts.ts'
import { type LearntCheck, type LearntGroup, type Odd, shown, sorted } from './learnt.ts'

/** Files with their rights, and lines of files: what a plain tree can show of mounts and kernel parameters. */
export function learnFiles(facts: Facts, odd: Odd): LearntGroup[] {
  return [
    group('file', 'Who may read and write what decides who gets in.', rightsOf(facts.file, odd)),
    group('file', 'Time zone and language.', [...linksOf(facts, odd), ...linesOf(languages(facts), odd)]),
    group('file', 'Programs that run as their owner, whoever starts them (set-uid).', rightsOf(facts.setuid, odd)),
    group(
      'mount',
      'What is mounted, without the disk the system itself is on. As lines of fstab: nothing is mounted in a plain tree.',
      linesOf(mounts(facts, odd), odd),
    ),
    group(
      'kernel-param',
      'Kernel parameters. As lines of files: neither a plain tree nor a container has a kernel of its own.',
      linesOf(parameters(facts, odd), odd),
    ),
  ]
}

const group = (topic: LearntGroup['topic'], comment: string, checks: readonly LearntCheck[]): LearntGroup => ({
  topic,
  kind: 'file',
  comment,
  checks: sorted(checks),
})

const TYPES: Readonly<Record<number, string>> = { 0o100000: 'file', 0o120000: 'symlink', 0o040000: 'directory' }

function rightsOf(rows: Facts['file'], odd: Odd): LearntCheck[] {
  return rows.flatMap(([path = '', raw = '', uid = '', gid = '', user = '', group = '']) => {
    const bits = /^[0-9a-f]{1,8}$/.test(raw) ? Number.parseInt(raw, 16) : 0
    const filetype = TYPES[bits & 0o170000]
    const [owner, owners] = [user === 'UNKNOWN' ? uid : user, group === 'UNKNOWN' ? gid : group]
    if (filetype === undefined || !path.startsWith('/') || !odd.allows('file', path, owner, owners)) return []
    const mode = (bits & 0o7777).toString(8).padStart(4, '0')
    return [{ name: path, attributes: { exists: true, filetype, mode, owner, group: owners } }]
  })
}

const linksOf = (facts: Facts, odd: Odd): LearntCheck[] =>
  facts.link.flatMap(([path = '', target = '']) =>
    path.startsWith('/') && odd.allows('link', path, target)
      ? [{ name: path, attributes: { exists: true, filetype: 'symlink', 'linked-to': target } }]
      : [],
  )

interface Line {
  readonly file: string
  /** What a line of it must match. */
  readonly pattern: string
}

function linesOf(lines: readonly Line[], odd: Odd): LearntCheck[] {
  const byFile = new Map<string, Set<string>>()
  for (const { file, pattern } of lines)
    if (file.startsWith('/') && odd.allows('file', file))
      byFile.set(file, (byFile.get(file) ?? new Set()).add(`/${pattern}/`))
  return [...byFile].map(([name, patterns]) => ({ name, attributes: { exists: true, contents: [...patterns].sort() } }))
}

const literal = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
/** However many blanks there are between its words. */
const spaced = (text: string): string =>
  text
    .trim()
    .split(/\s+/)
    .map(literal)
    .join(String.raw`\s+`)
const isAscii = (text: string): boolean => /^[\t\u0020-\u007E]*$/.test(text)

const languages = (facts: Facts): Line[] =>
  facts.locale.flatMap(([file = '', line = '']) =>
    /^LANG=[\w.@"'-]+$/.test(line) ? [{ file, pattern: String.raw`^\s*${literal(line)}\s*$` }] : [],
  )

/** A node that boots an image is not installed on these. */
const OF_THE_INSTALLATION = /^(\/|\/boot(\/.*)?|\/efi|none|swap)$/
/** Names that are another machine's; a device is only this one's. */
const OF_THIS_MACHINE = /^(\/dev\/|(PART)?(UUID|LABEL)=)/

function mounts(facts: Facts, odd: Odd): Line[] {
  return facts.fstab.flatMap(([file = '', line = '']) => {
    // What follows may hold passwords.
    const [device = '', at = '', type = ''] = line.split(/\s+/)
    if (type === '' || type === 'swap' || OF_THE_INSTALLATION.test(at)) return []
    if (!isAscii(device) || !odd.allows('mount', at, type)) return []
    const source = OF_THIS_MACHINE.test(device) ? String.raw`\S+` : literal(device)
    return [{ file, pattern: String.raw`^\s*${source}\s+${literal(at)}\s+${literal(type)}(\s|$)` }]
  })
}

function parameters(facts: Facts, odd: Odd): Line[] {
  const last = new Map<string, Line>()
  for (const [file = '', line = ''] of facts.sysctl) {
    const [, key, value = ''] = /^-?\s*([\w./*@:-]+)\s*=\s*(.+)$/.exec(line) ?? []
    if (key === undefined) continue
    if (isAscii(value))
      last.set(key, { file, pattern: String.raw`^\s*-?\s*${literal(key)}\s*=\s*${spaced(value)}\s*$` })
    else odd.notes.push(`left out: kernel parameter ${shown(key)}: odd characters`)
  }
  return [...last.values()]
}
