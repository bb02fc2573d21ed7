import { z } from 'zod'
import { MusterError } from '../../lib/errors.ts'
import {
  type InstalledPackage,
  MAX_LICENCE_LENGTH,
  MAX_PACKAGES,
  PACKAGE_MANAGERS,
  WORD,
  tidyPackages,
} from './package.ts'

const SCHEMA = 'muster.packages/1'

const Word = z.string().regex(WORD, 'is not a word')

const PackageList = z.strictObject({
  schema: z.literal(SCHEMA),
  packages: z
    .array(
      z.strictObject({
        name: Word,
        version: Word,
        arch: Word,
        manager: z.enum(PACKAGE_MANAGERS),
        source: Word.optional(),
        licence: z.string().min(1).max(MAX_LICENCE_LENGTH).optional(),
        size: z.int().min(0),
      }),
    )
    .max(MAX_PACKAGES),
})

/** The artefact `packages` of an image: JSON with a package per line, so that any diff of two of them reads well. */
export function packageListText(packages: readonly InstalledPackage[]): string {
  const lines = tidyPackages(packages).map(one =>
    JSON.stringify({
      name: one.name,
      version: one.version,
      arch: one.arch,
      manager: one.manager,
      source: one.source,
      licence: one.licence,
      size: one.size,
    }),
  )
  const inside = lines.length === 0 ? '' : `\n${lines.join(',\n')}\n`
  return `{"schema":"${SCHEMA}","packages":[${inside}]}\n`
}

export function parsePackageList(text: string): InstalledPackage[] {
  const result = PackageList.safeParse(jsonOf(text))
  if (!result.success) {
    const [issue] = result.error.issues
    throw damaged(`${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'is not valid'}`)
  }
  // What is optional is absent or there, never undefined.
  return result.data.packages as InstalledPackage[]
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw damaged('it is not JSON')
  }
}

const damaged = (why: string): MusterError =>
  new MusterError('IMAGE_DAMAGED', `the list of packages cannot be read: ${why}`)
