import { compareNames } from '../lib/tree/entry.ts'
import { isSpdxExpression } from './packages/licence.ts'
import type { OsRelease } from './packages/os-release.ts'
import { type InstalledPackage, tidyPackages } from './packages/package.ts'
import { packageUrl } from './packages/purl.ts'

export interface SbomInput {
  /** Of the image. */
  readonly name: string
  /** sha256:…; makes the document's own address. */
  readonly digestOfInputs: string
  /** The image's time, not that of the clock: the same inputs give the same bytes. */
  readonly created: string
  readonly os?: OsRelease | undefined
  readonly packages: readonly InstalledPackage[]
}

const UNKNOWN = 'NOASSERTION'
const DOCUMENT = 'SPDXRef-DOCUMENT'
const IMAGE = 'SPDXRef-Image'

/** The artefact `sbom` of an image: SPDX 2.3 as JSON (https://spdx.github.io/spdx-spec/v2.3/). */
export function sbomText({ name, digestOfInputs, created, os, packages }: SbomInput): string {
  const sorted = tidyPackages(packages)
  const licences = licenceRefs(sorted)
  const taken = new Set([DOCUMENT, IMAGE])
  const listed = sorted.map(one => spdxPackage(one, uniqueId('SPDXRef-Package', idOf(one), taken), licences, os))
  const document = {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: DOCUMENT,
    name,
    // The place the specification has for tools without a web site of their own.
    documentNamespace: `https://spdx.org/spdxdocs/${encodeURIComponent(name)}-${digestOfInputs.replace(/^sha256:/, '')}`,
    creationInfo: { created: wholeSeconds(created), creators: ['Tool: muster'] },
    packages: [
      {
        SPDXID: IMAGE,
        name,
        versionInfo: digestOfInputs,
        ...(os?.name !== undefined && { summary: os.name }),
        primaryPackagePurpose: 'OPERATING-SYSTEM',
        ...NOTHING_KNOWN,
        licenseDeclared: UNKNOWN,
      },
      ...listed,
    ],
    ...(licences.size > 0 && {
      hasExtractedLicensingInfos: [...licences].map(([text, licenseId]) => ({ licenseId, extractedText: text })),
    }),
    relationships: [
      { spdxElementId: DOCUMENT, relationshipType: 'DESCRIBES', relatedSpdxElement: IMAGE },
      ...listed.map(({ SPDXID }) => ({
        spdxElementId: IMAGE,
        relationshipType: 'CONTAINS',
        relatedSpdxElement: SPDXID,
      })),
    ],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

const NOTHING_KNOWN = {
  downloadLocation: UNKNOWN,
  filesAnalyzed: false,
  copyrightText: UNKNOWN,
  licenseConcluded: UNKNOWN,
} as const

function spdxPackage(
  one: InstalledPackage,
  SPDXID: string,
  licences: ReadonlyMap<string, string>,
  os: OsRelease | undefined,
) {
  return {
    SPDXID,
    name: one.name,
    versionInfo: one.version,
    ...(one.source !== undefined && { sourceInfo: `built from the source package ${one.source}` }),
    ...NOTHING_KNOWN,
    licenseDeclared: one.licence === undefined ? UNKNOWN : (licences.get(one.licence) ?? one.licence),
    externalRefs: [
      { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: packageUrl(one, os) },
    ],
  }
}

const idOf = ({ name, arch, version }: InstalledPackage): string => [name, arch, version].join('-')

/** What is no expression of SPDX gets an id of this document; its text is quoted. */
function licenceRefs(packages: readonly InstalledPackage[]): Map<string, string> {
  const texts = new Set(packages.flatMap(({ licence }) => licence ?? []))
  const taken = new Set<string>()
  return new Map(
    [...texts]
      .filter(text => !isSpdxExpression(text))
      .sort(compareNames)
      .map(text => [text, uniqueId('LicenseRef', text.slice(0, MAX_LICENCE_ID), taken)]),
  )
}

const MAX_LICENCE_ID = 60

/** Ids have letters, digits, dots and dashes: g++ and g-- would become the same one. */
function uniqueId(prefix: string, text: string, taken: Set<string>): string {
  const wanted = `${prefix}-${text.replaceAll(/[^A-Za-z0-9.-]/g, '-')}`
  let id = wanted
  for (let count = 2; taken.has(id); count++) id = `${wanted}-${count}`
  taken.add(id)
  return id
}

/** SPDX allows no fractions. */
const wholeSeconds = (created: string): string => new Date(created).toISOString().replace(/\.\d+Z$/, 'Z')
