import { type InstalledPackage, checkBounds, checkCount, checkedPackage, tidyPackages } from './package.ts'

/**
 * lib/apk/db/installed: one letter, a colon and a value per line, an empty line after each package; see apk-package(5).
 * Most of it are the files of the packages, which are passed over.
 */
export function parseApkInstalled(text: string): InstalledPackage[] {
  checkBounds('apk', text)
  const found: InstalledPackage[] = []
  let fields = new Map<string, string>()
  const finish = (): void => {
    if (fields.size === 0) return
    found.push(
      checkedPackage('apk', {
        name: fields.get('P'),
        version: fields.get('V'),
        arch: fields.get('A') ?? 'noarch',
        source: fields.get('o'),
        licence: fields.get('L'),
        size: Number(fields.get('I') ?? 0),
      }),
    )
    checkCount('apk', found.length)
    fields = new Map()
  }
  for (const line of text.split('\n')) {
    if (line.trim() === '') finish()
    else if (line[1] === ':' && WANTED.has(line[0] ?? '') && !fields.has(line[0] ?? ''))
      fields.set(line[0] ?? '', line.slice(2).trim())
  }
  finish()
  return tidyPackages(found)
}

const WANTED = new Set(['P', 'V', 'A', 'o', 'L', 'I'])
