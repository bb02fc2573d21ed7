import { MusterError } from '../../../lib/errors.ts'

/**
 * What facts.sh says of a system. It comes from a machine or a tree that is nobody's friend yet, so it is read strictly:
 *
 *     muster-facts 1
 *     package <tab> slurmd <tab> 22.05.8-4 <tab> optional <tab> net
 *     end
 *
 * Kind → how many fields it has. Of those that quote a line of a file the last may have tabs of its own.
 */
const FIELDS = {
  /** As os-release has it, quotes included. */
  system: 1,
  /** Who says which packages were asked for: apt-mark, dpkg, apk, dnf, zypper, rpm. */
  manager: 1,
  /** A program that is not there to ask. */
  lacks: 1,
  /** Name, version; of dpkg also priority and section. */
  package: 4,
  asked: 1,
  automatic: 1,
  enabled: 1,
  active: 1,
  /** Name, uid, gid, home, shell. */
  user: 5,
  /** Name, gid, members. */
  group: 3,
  /** File, line. */
  fstab: 2,
  sysctl: 2,
  locale: 2,
  /** Path, where it leads. */
  link: 2,
  /** Path, mode in hexadecimal, uid, gid, owner, group. */
  file: 6,
  setuid: 6,
  /** Protocol, address:port in hexadecimal. */
  socket: 2,
} as const

type FactKind = keyof typeof FIELDS
export type Facts = Readonly<Record<FactKind, readonly (readonly string[])[]>>

/** Several times what the largest installations say. */
export const MOST_BYTES = 4 * 2 ** 20
const MOST_LINES = 50_000
const LONGEST_LINE = 4096

const FIRST = 'muster-facts 1'
const LAST = 'end'

/** `from` is what errors call where they come from. */
export function parseFacts(bytes: Buffer, from: string): Facts {
  if (bytes.length > MOST_BYTES) throw refused(from, `it says more than ${MOST_BYTES / 2 ** 20} MiB`)
  // Every byte a character: names with other letters than ASCII's are left out later, whatever their encoding.
  const all = bytes.toString('latin1').split('\n')
  // A login shell may greet before.
  const begin = all.indexOf(FIRST)
  if (begin < 0) throw refused(from, 'it does not begin as it should')
  const lines = all.slice(begin + 1)
  const end = lines.indexOf(LAST)
  if (end < 0 || lines.slice(end + 1).some(line => line !== '')) throw refused(from, 'it does not end as it should')
  if (end > MOST_LINES) throw refused(from, `it says more than ${MOST_LINES} lines`)
  const facts = Object.fromEntries(Object.keys(FIELDS).map(kind => [kind, [] as string[][]])) as Record<
    FactKind,
    string[][]
  >
  for (const [at, line] of lines.slice(0, end).entries()) {
    const problem = readFact(line, facts)
    if (problem !== undefined) throw refused(from, `line ${at + 2} ${problem}`)
  }
  return facts
}

const QUOTES_A_LINE: ReadonlySet<string> = new Set<FactKind>(['fstab', 'sysctl', 'locale'])

/** Adds it to the others, or says what is wrong with it. */
function readFact(line: string, facts: Record<FactKind, string[][]>): string | undefined {
  if (line.length > LONGEST_LINE) return 'is too long'
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0008\u000A-\u001F\u007F]/.test(line)) return 'has a control character in it'
  const [kind = '', ...rest] = line.split('\t')
  if (!Object.hasOwn(FIELDS, kind)) return 'is no fact'
  const count = FIELDS[kind as FactKind]
  const fields = QUOTES_A_LINE.has(kind) ? [...rest.slice(0, count - 1), rest.slice(count - 1).join('\t')] : rest
  if (fields.length !== count) return `has ${fields.length} fields, not ${count}`
  facts[kind as FactKind].push(fields)
  return undefined
}

const refused = (from: string, why: string): MusterError =>
  new MusterError('EXEC_FAILED', `what ${from} says of itself cannot be understood: ${why}`, {
    hint: 'nothing was written; does it have a POSIX shell, and does that print nothing of its own?',
  })
