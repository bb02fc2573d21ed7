/**
 * What a package manager leaves behind and no image should carry: logs, caches, backups, locks, identities that must be
 * each machine's own. Taken away after every stage, so that two builds agree and no two nodes share a host key.
 */
const TRACES = [
  'var/log/dpkg.log',
  'var/log/alternatives.log',
  'var/log/bootstrap.log',
  'var/log/apt/*',
  'var/log/dnf*',
  'var/log/hawkey.log',
  'var/cache/apt/*',
  'var/cache/dnf/*',
  'var/cache/libdnf5/*',
  'var/cache/zypp/*',
  'var/cache/ldconfig/aux-cache',
  'var/cache/man/*',
  'var/cache/debconf/*-old',
  'var/lib/apt/lists/*',
  'var/lib/dpkg/*-old',
  'var/lib/dpkg/lock*',
  'var/lib/dpkg/triggers/Lock',
  'var/lib/dnf/*',
  'var/lib/rpm/.rpm.lock',
  'var/lib/rpm/__db.*',
  'var/lib/rpm/*-shm',
  'var/lib/rpm/*-wal',
  'usr/lib/sysimage/rpm/.rpm.lock',
  'usr/lib/sysimage/rpm/*-shm',
  'usr/lib/sysimage/rpm/*-wal',
  'etc/passwd-',
  'etc/group-',
  'etc/shadow-',
  'etc/gshadow-',
  'etc/subuid-',
  'etc/subgid-',
  'etc/.pwd.lock',
  'root/.ansible',
  'root/.bash_history',
  'root/.cache',
  'tmp/*',
  'run/*',
  'var/tmp/*',
]

const IDENTITIES = [
  'etc/ssh/ssh_host_*',
  'etc/munge/munge.key',
  'var/lib/dbus/machine-id',
  'var/lib/systemd/random-seed',
  'var/lib/systemd/credential.secret',
]

export const LEFTOVERS: readonly string[] = [...TRACES, ...IDENTITIES]

/** `*` matches any part of one name. */
export const globOf = (name: string): RegExp =>
  new RegExp(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*')}$`, 's')

/** Why a path of an image, or what lies below it, never stays: for recipes that would put something there. */
export function whyTakenOut(path: string): string | undefined {
  if (isBelow(path, IDENTITIES)) return "is taken out of every image: it is a secret, or must be each machine's own"
  if (isBelow(path, TRACES)) return 'is taken out of every image, as all logs, caches, locks and temporary files are'
  return undefined
}

const isBelow = (path: string, patterns: readonly string[]): boolean =>
  patterns.some(pattern => {
    const parts = pattern.split('/').map(globOf)
    const names = path.split('/').filter(Boolean)
    return names.length >= parts.length && parts.every((part, depth) => part.test(names[depth] ?? ''))
  })
