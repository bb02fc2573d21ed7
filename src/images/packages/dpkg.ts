import { type InstalledPackage, checkBounds, checkCount, checkedPackage, tidyPackages } from './package.ts'

const KIBIBYTE = 1024

/**
 * var/lib/dpkg/status, or the files of status.d joined by empty lines. Those of status.d are mere control files without
 * a Status: what is there is installed.
 */
export function parseDpkgStatus(text: string): InstalledPackage[] {
  checkBounds('dpkg', text)
  const found: InstalledPackage[] = []
  for (const fields of stanzas(text)) {
    if (!isInstalled(fields.get('status'))) continue
    found.push(
      checkedPackage('dpkg', {
        name: fields.get('package'),
        version: fields.get('version'),
        arch: fields.get('architecture') ?? 'all',
        // Source: glibc (2.36-9): the version is only there when it differs.
        source: fields.get('source')?.split(' ')[0],
        size: Number(fields.get('installed-size') ?? 0) * KIBIBYTE,
      }),
    )
    checkCount('dpkg', found.length)
  }
  return tidyPackages(found)
}

const WANTED = new Set(['package', 'version', 'architecture', 'source', 'installed-size', 'status'])

/** deb822: fields `Name: value`, continued by lines that start with white space; an empty line ends a stanza. */
function* stanzas(text: string): Generator<ReadonlyMap<string, string>> {
  let fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line.trim() === '') {
      if (fields.size > 0) yield fields
      fields = new Map()
      continue
    }
    const colon = line.indexOf(':')
    if (colon < 1 || line.startsWith(' ') || line.startsWith('\t')) continue
    const name = line.slice(0, colon).toLowerCase()
    if (WANTED.has(name) && !fields.has(name)) fields.set(name, line.slice(colon + 1).trim())
  }
  if (fields.size > 0) yield fields
}

/**
 * The first word is what is wanted (install, hold), the last what is: only that counts. A trigger still to be run does
 * not make a package less installed.
 */
const isInstalled = (status: string | undefined): boolean =>
  status === undefined || /^\w+ ok (installed|triggers-pending|triggers-awaited)$/.test(status)
