import type { PackageManager } from './package.ts'

/** Where a root keeps what is installed in it. */
export interface PackageDatabase {
  readonly manager: PackageManager
  /** dpkg and apk: files to read, all of them. rpm: what the database is made of, for `rpm --root` to read. */
  readonly files: readonly string[]
  /** dpkg: a directory with a file per package, as distroless images have it; `*.md5sums` in it are none of them. */
  readonly directory?: string
  /** rpm: where the database lies, for `rpm --dbpath`. */
  readonly dbpath?: string
}

const DPKG = 'var/lib/dpkg/status'
const APK = ['lib/apk/db/installed', 'usr/lib/apk/db/installed']
// The newer place first: during a move the old one is a link to it, or what was left behind.
const RPM_PLACES = ['usr/lib/sysimage/rpm', 'var/lib/rpm']
const RPM_FILES = ['rpmdb.sqlite', 'Packages.db', 'Packages']

/** Which manager a tree has, from its paths. Undefined for a tree made without one. */
export function packageDatabase(paths: ReadonlySet<string> | ((path: string) => boolean)): PackageDatabase | undefined {
  const has = typeof paths === 'function' ? paths : (path: string) => paths.has(path)
  const dpkg = dpkgDatabase(has)
  const rpm = rpmDatabase(has)
  // Each family packages the other's manager, with an empty database; every Debian and its kin has debian_version.
  if (dpkg !== undefined && rpm !== undefined) return has('etc/debian_version') ? dpkg : rpm
  return dpkg ?? rpm ?? apkDatabase(has)
}

type Has = (path: string) => boolean

function dpkgDatabase(has: Has): PackageDatabase | undefined {
  const files = has(DPKG) ? [DPKG] : []
  const directory = `${DPKG}.d`
  if (has(directory)) return { manager: 'dpkg', files, directory }
  return files.length > 0 ? { manager: 'dpkg', files } : undefined
}

function rpmDatabase(has: Has): PackageDatabase | undefined {
  for (const dbpath of RPM_PLACES) {
    const files = RPM_FILES.map(name => `${dbpath}/${name}`).filter(has)
    if (files.length > 0) return { manager: 'rpm', files, dbpath }
  }
  return undefined
}

function apkDatabase(has: Has): PackageDatabase | undefined {
  // With a merged /usr the one is the other.
  const file = APK.find(has)
  return file === undefined ? undefined : { manager: 'apk', files: [file] }
}
