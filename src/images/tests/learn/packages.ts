import type { Facts } from './facts.ts'
import { type LearntGroup, type Odd, sorted } from './learnt.ts'

/** What every Debian has, and the libraries it needs: installers mark them as asked for, but nobody asked. */
const EVERYWHERE = new Set(['required', 'important'])
const LIBRARIES = /(^|\/)(old)?libs$/

const VERSION = /^[\w.+:~^-]{1,200}$/

const ORIGINS: Readonly<Record<string, string>> = {
  'apt-mark': 'Packages asked for by hand (apt-mark showmanual), without libraries and those that every Debian has.',
  dpkg: 'All packages but libraries and those that every Debian has: there is no apt-mark to say which were asked for.',
  apk: 'Packages asked for by hand (/etc/apk/world).',
  dnf: 'Packages asked for by hand (dnf repoquery --userinstalled).',
  zypper: 'Packages asked for by hand (all that /var/lib/zypp/AutoInstalled does not name).',
  rpm: 'All packages: there is no dnf or zypper to say which were asked for.',
}

export function learnPackages(facts: Facts, withVersions: boolean, odd: Odd): LearntGroup[] {
  const manager = facts.manager[0]?.[0] ?? ''
  const installed = new Map<string, string[]>()
  const common = new Set<string>()
  for (const [name = '', version = '', priority = '', section = ''] of facts.package) {
    installed.set(name, [...(installed.get(name) ?? []), version])
    if (EVERYWHERE.has(priority) || LIBRARIES.test(section)) common.add(name)
  }
  const wanted = wantedOf(facts, manager, [...installed.keys()])
  const checks = wanted.flatMap(name => {
    const versions = installed.get(bare(name, manager))
    if (versions === undefined || common.has(bare(name, manager)) || !odd.allows('package', name)) return []
    const known = [...new Set(versions)].filter(version => VERSION.test(version)).sort()
    return [
      { name, attributes: { installed: true, ...(withVersions && known.length > 0 && { versions: exactly(known) }) } },
    ]
  })
  const comment = ORIGINS[manager] ?? 'Packages.'
  return [{ topic: 'package', kind: 'package', comment, checks: sorted(checks) }]
}

/** Several of a kernel, in whatever order. */
const exactly = (versions: readonly string[]): unknown =>
  versions.length === 1 ? versions : { 'consist-of': versions }

function wantedOf(facts: Facts, manager: string, all: readonly string[]): string[] {
  const asked = facts.asked.map(([name = '']) => name)
  if (manager === 'apt-mark' || manager === 'dnf') return asked
  // vim, vim=9.0, vim>9, vim@edge; !vim says that it must not be there, .build is only a name for others.
  if (manager === 'apk') return asked.flatMap(line => /^([^!.=<>~@\s][^=<>~@\s]*)/.exec(line)?.[1] ?? [])
  const automatic = new Set(facts.automatic.map(([name = '']) => name))
  // Keys that packages are signed with look like packages to rpm.
  return all.filter(name => !automatic.has(name) && name !== 'gpg-pubkey')
}

/** libc6:i386 is libc6 of another architecture. */
const bare = (name: string, manager: string): string => (manager === 'apt-mark' ? name.replace(/:.*$/, '') : name)
