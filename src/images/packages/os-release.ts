/** What /etc/os-release says of a root, see os-release(5). */
export interface OsRelease {
  /** debian, rocky, opensuse-leap; `linux` where nothing is said. */
  readonly id: string
  /** What it is made from, nearest first. */
  readonly idLike: readonly string[]
  readonly version?: string
  /** bookworm, noble. */
  readonly codename?: string
  /** For people: Debian GNU/Linux 12 (bookworm). */
  readonly name?: string
  readonly family: OsFamily
}

export type OsFamily = 'debian' | 'redhat' | 'suse' | 'alpine' | 'arch' | 'other'

const MAX_CHARACTERS = 64 * 1024
const MAX_VALUE = 256
const ID = /^[a-z0-9][a-z0-9._-]{0,62}$/

export function parseOsRelease(text: string): OsRelease {
  const values = new Map<string, string>()
  // Of a key that stands there twice the last counts, as in a shell that sources the file.
  for (const line of text.slice(0, MAX_CHARACTERS).split('\n')) {
    const [, key, rest = ''] = /^\s*([A-Z][A-Z0-9_]*)=(.*)$/s.exec(line) ?? []
    const value = key === undefined ? undefined : unquote(rest.trim())
    if (key !== undefined && value !== undefined) values.set(key, value)
  }
  const id = values.get('ID')?.toLowerCase() ?? ''
  const idLike = (values.get('ID_LIKE') ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter(word => ID.test(word))
  const version = values.get('VERSION_ID') || undefined
  const codename = values.get('VERSION_CODENAME') || undefined
  const name = values.get('PRETTY_NAME') || values.get('NAME') || undefined
  const known = ID.test(id) ? id : 'linux'
  return {
    id: known,
    idLike,
    ...(version !== undefined && { version }),
    ...(codename !== undefined && { codename }),
    ...(name !== undefined && { name }),
    family: familyOf([known, ...idLike]),
  }
}

/** One word as a shell reads it: plain, 'single' or "double" quoted; undefined for what is no single word. */
function unquote(text: string): string | undefined {
  const value = plainOf(text)
  // oxlint-disable-next-line no-control-regex
  return value?.replaceAll(/[\u0000-\u001F\u007F-\u009F]/g, '').slice(0, MAX_VALUE)
}

function plainOf(text: string): string | undefined {
  if (text.startsWith("'")) return /^'([^']*)'$/.exec(text)?.[1]
  // Between double quotes a backslash only means something before these four.
  if (text.startsWith('"')) return /^"((?:[^"\\]|\\.)*)"$/.exec(text)?.[1]?.replaceAll(/\\([$"\\`])/g, '$1')
  return /^(?:[^\s"'\\]|\\.)*$/.test(text) ? text.replaceAll(/\\(.)/g, '$1') : undefined
}

const FAMILIES: Readonly<Record<Exclude<OsFamily, 'other'>, RegExp>> = {
  debian: /^(debian|ubuntu)$/,
  redhat: /^(rhel|fedora|centos|rocky|almalinux|ol|amzn|openeuler|scientific)$/,
  suse: /^(suse|opensuse.*|sle[sd]?|sle[_-].*)$/,
  alpine: /^alpine$/,
  arch: /^(arch|archlinux)$/,
}

/** The distribution's own name says most, then what it is like. */
function familyOf(ids: readonly string[]): OsFamily {
  const families = Object.entries(FAMILIES) as [OsFamily, RegExp][]
  for (const id of ids) {
    const [family] = families.find(([, pattern]) => pattern.test(id)) ?? []
    if (family !== undefined) return family
  }
  return 'other'
}
