import { type InstalledPackage, checkBounds, checkCount, checkedPackage, tidyPackages } from './package.ts'

// ASCII has characters for just this (unit and record separator); no text of a package has them.
const FIELD = '\x1f'
const RECORD = '\x1e'

/** For `rpm --root ROOT -qa --queryformat`: what parseRpmQuery reads. The database itself has changed its form thrice. */
export const RPM_QUERY_FORMAT =
  [
    '%{NAME}',
    '%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}',
    '%{ARCH}',
    '%{LONGSIZE}',
    '%{SOURCERPM}',
    '%{LICENSE}',
  ].join(FIELD) + RECORD

export function parseRpmQuery(text: string): InstalledPackage[] {
  checkBounds('rpm', text)
  const found: InstalledPackage[] = []
  for (const record of text.split(RECORD)) {
    if (record.trim() === '') continue
    const [name, version, arch = '', size, source, licence] = record.split(FIELD)
    // Keys that packages are checked with stand among them, but are none.
    if (name?.trim() === 'gpg-pubkey') continue
    found.push(
      checkedPackage('rpm', {
        name: name?.trim(),
        version: version?.trim(),
        arch: known(arch) ?? 'noarch',
        source: nameOfSource(known(source)),
        licence: known(licence),
        size: Number(size),
      }),
    )
    checkCount('rpm', found.length)
  }
  return tidyPackages(found)
}

/** rpm says `(none)` for what a package does not have. */
const known = (value: string | undefined): string | undefined =>
  value === undefined || value === '' || value === '(none)' ? undefined : value

/** bash-5.1.8-6.el9.src.rpm → bash */
const nameOfSource = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : /^(.+)-[^-]+-[^-]+\.(?:no)?src\.rpm$/.exec(file)?.[1]
