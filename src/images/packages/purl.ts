import type { OsRelease } from './os-release.ts'
import type { InstalledPackage, PackageManager } from './package.ts'

const TYPES: Readonly<Record<PackageManager, string>> = { dpkg: 'deb', rpm: 'rpm', apk: 'apk' }
/** Where the root does not say whose packages these are. */
const VENDORS: Readonly<Record<PackageManager, string>> = { dpkg: 'debian', rpm: 'linux', apk: 'alpine' }

/**
 * A package as scanners for vulnerabilities know it (ECMA-427, https://www.packageurl.org):
 * pkg:deb/debian/bash@5.2.15-2%2Bb2?arch=amd64&distro=debian-12
 */
export function packageUrl(one: InstalledPackage, os?: OsRelease): string {
  const { epoch, version } = one.manager === 'rpm' ? splitEpoch(one.version) : { version: one.version }
  const distro = os === undefined ? undefined : [os.id, os.version].filter(part => part !== undefined).join('-')
  const path = [TYPES[one.manager], vendorOf(one.manager, os), encode(nameOf(one))].join('/')
  // In the order of their names, as the canonical form wants it.
  const qualifiers = Object.entries({ arch: one.arch, distro, epoch })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${encode(value ?? '')}`)
  return `pkg:${path}@${encode(version)}?${qualifiers.join('&')}`
}

/** Names of rpm packages may differ in nothing but case; those of the others are lower-case by definition. */
const nameOf = ({ manager, name }: InstalledPackage): string => (manager === 'rpm' ? name : name.toLowerCase())

function vendorOf(manager: PackageManager, os: OsRelease | undefined): string {
  if (os === undefined || os.id === 'linux') return VENDORS[manager]
  if (os.id === 'rhel') return 'redhat'
  // opensuse-leap and opensuse-tumbleweed are releases, told apart by `distro`.
  if (os.id.startsWith('opensuse')) return 'opensuse'
  return os.family === 'suse' ? 'suse' : encode(os.id)
}

/** rpm's epoch is a qualifier, dpkg's a part of the version. */
function splitEpoch(text: string): { epoch?: string; version: string } {
  const [, epoch, version] = /^(\d+):(.*)$/.exec(text) ?? []
  return epoch === undefined || version === undefined ? { version: text } : { epoch, version }
}

/** Everything but letters, digits, `.-_~` and the colon; encodeURIComponent leaves five more. */
const encode = (text: string): string =>
  encodeURIComponent(text)
    .replaceAll(/[!'()*]/g, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%3A', ':')
