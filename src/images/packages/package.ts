import { MusterError } from '../../lib/errors.ts'
import { compareNames } from '../../lib/tree/entry.ts'

export const PACKAGE_MANAGERS = ['dpkg', 'rpm', 'apk'] as const
export type PackageManager = (typeof PACKAGE_MANAGERS)[number]

/** A package that is installed in a root, as its package manager tells it. */
export interface InstalledPackage {
  readonly name: string
  /** With epoch and revision, in the manager's own way of writing: 1:2.36-9+deb12u7, 2:9.0.1592-1.el9. */
  readonly version: string
  readonly arch: string
  readonly manager: PackageManager
  /** Name of the source package, where it is known. */
  readonly source?: string
  /** As the packager wrote it; Debian's database does not say. */
  readonly licence?: string
  /** Bytes installed, as the package itself says: what its scripts make is not in it. */
  readonly size: number
}

/** A distribution has about 60,000 packages; a database beyond these is damaged or an attack. */
export const MAX_PACKAGES = 100_000
export const MAX_DATABASE_CHARACTERS = 64 * 2 ** 20
export const MAX_LICENCE_LENGTH = 2000

/** Names, versions and architectures are printed, put into URLs and compared: nothing but visible ASCII. */
export const WORD = /^[\x21-\x7e]{1,255}$/

export function comparePackages(a: InstalledPackage, b: InstalledPackage): number {
  return compareNames(a.name, b.name) || compareNames(a.arch, b.arch) || compareNames(a.version, b.version)
}

/** In order and each once: two databases of one root may tell the same. */
export function tidyPackages(packages: readonly InstalledPackage[]): InstalledPackage[] {
  const sorted = [...packages].sort(comparePackages)
  return sorted.filter((one, index) => {
    const before = sorted[index - 1]
    return before === undefined || comparePackages(before, one) !== 0
  })
}

/** What a record of a database says, before it is looked at. */
export interface RawPackage {
  readonly name: string | undefined
  readonly version: string | undefined
  readonly arch: string
  readonly source?: string | undefined
  readonly licence?: string | undefined
  readonly size: number
}

export function checkedPackage(manager: PackageManager, raw: RawPackage): InstalledPackage {
  const { name, version, arch, source } = raw
  if (name === undefined || !WORD.test(name)) throw damaged(manager, `${shown(name)} is not the name of a package`)
  if (version === undefined || !WORD.test(version))
    throw damaged(manager, `${shown(version)} is not a version of ${name}`)
  if (!WORD.test(arch)) throw damaged(manager, `${shown(arch)} is not an architecture of ${name}`)
  const licence = tidyLicence(raw.licence)
  return {
    name,
    version,
    arch,
    manager,
    ...(source !== undefined && WORD.test(source) && { source }),
    ...(licence !== '' && { licence }),
    size: Number.isSafeInteger(raw.size) && raw.size > 0 ? raw.size : 0,
  }
}

/** Free text in many databases: on one line, without what would move a terminal's cursor. */
const tidyLicence = (text = ''): string =>
  text
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, MAX_LICENCE_LENGTH)
    .trim()

export function checkBounds(manager: PackageManager, text: string): void {
  if (text.length > MAX_DATABASE_CHARACTERS) throw damaged(manager, 'it is too long')
}

export function checkCount(manager: PackageManager, count: number): void {
  if (count > MAX_PACKAGES) throw damaged(manager, `it tells of more than ${MAX_PACKAGES} packages`)
}

/** A list with a hole in it would be worse than none: people look for vulnerable packages in it. */
const damaged = (manager: PackageManager, why: string): MusterError =>
  new MusterError('BUILD_FAILED', `the root's ${manager} database cannot be read: ${why}`, {
    hint: 'is the database of the root whole?',
  })

const shown = (text: string | undefined): string =>
  text === undefined ? 'nothing' : JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
