import { expect, test } from 'vitest'
import { z } from 'zod'
import { parseOsRelease } from './packages/os-release.ts'
import type { InstalledPackage } from './packages/package.ts'
import { type SbomInput, sbomText } from './sbom.ts'

const DEBIAN = parseOsRelease('ID=debian\nVERSION_ID=12\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')

const BASH: InstalledPackage = {
  name: 'bash',
  version: '5.2.15-2+b2',
  arch: 'amd64',
  manager: 'dpkg',
  source: 'bash',
  size: 7_335_936,
}
const GCC: InstalledPackage = {
  name: 'g++',
  version: '4:12.2.0-3',
  arch: 'amd64',
  manager: 'dpkg',
  licence: 'GPLv3+',
  size: 15_000,
}

const input = (packages: readonly InstalledPackage[]): SbomInput => ({
  name: 'compute',
  digestOfInputs: `sha256:${'3f'.repeat(32)}`,
  created: '2024-06-01T12:00:00.123Z',
  os: DEBIAN,
  packages,
})

test('two packages, written out', () => {
  expect(sbomText(input([GCC, BASH]))).toBe(`{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "compute",
  "documentNamespace": "https://spdx.org/spdxdocs/compute-3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f",
  "creationInfo": {
    "created": "2024-06-01T12:00:00Z",
    "creators": [
      "Tool: muster"
    ]
  },
  "packages": [
    {
      "SPDXID": "SPDXRef-Image",
      "name": "compute",
      "versionInfo": "sha256:3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f",
      "summary": "Debian GNU/Linux 12 (bookworm)",
      "primaryPackagePurpose": "OPERATING-SYSTEM",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "copyrightText": "NOASSERTION",
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "NOASSERTION"
    },
    {
      "SPDXID": "SPDXRef-Package-bash-amd64-5.2.15-2-b2",
      "name": "bash",
      "versionInfo": "5.2.15-2+b2",
      "sourceInfo": "built from the source package bash",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "copyrightText": "NOASSERTION",
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "NOASSERTION",
      "externalRefs": [
        {
          "referenceCategory": "PACKAGE-MANAGER",
          "referenceType": "purl",
          "referenceLocator": "pkg:deb/debian/bash@5.2.15-2%2Bb2?arch=amd64&distro=debian-12"
        }
      ]
    },
    {
      "SPDXID": "SPDXRef-Package-g---amd64-4-12.2.0-3",
      "name": "g++",
      "versionInfo": "4:12.2.0-3",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "copyrightText": "NOASSERTION",
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "LicenseRef-GPLv3-",
      "externalRefs": [
        {
          "referenceCategory": "PACKAGE-MANAGER",
          "referenceType": "purl",
          "referenceLocator": "pkg:deb/debian/g%2B%2B@4:12.2.0-3?arch=amd64&distro=debian-12"
        }
      ]
    }
  ],
  "hasExtractedLicensingInfos": [
    {
      "licenseId": "LicenseRef-GPLv3-",
      "extractedText": "GPLv3+"
    }
  ],
  "relationships": [
    {
      "spdxElementId": "SPDXRef-DOCUMENT",
      "relationshipType": "DESCRIBES",
      "relatedSpdxElement": "SPDXRef-Image"
    },
    {
      "spdxElementId": "SPDXRef-Image",
      "relationshipType": "CONTAINS",
      "relatedSpdxElement": "SPDXRef-Package-bash-amd64-5.2.15-2-b2"
    },
    {
      "spdxElementId": "SPDXRef-Image",
      "relationshipType": "CONTAINS",
      "relatedSpdxElement": "SPDXRef-Package-g---amd64-4-12.2.0-3"
    }
  ]
}
`)
})

/** The parts of SPDX 2.3's JSON schema and rules that are used here; unlike that schema, nothing more is allowed. */
const SpdxId = z.string().regex(/^SPDXRef-[A-Za-z0-9.-]+$/)
const Text = z.string().min(1)
const Document = z.strictObject({
  spdxVersion: z.literal('SPDX-2.3'),
  dataLicense: z.literal('CC0-1.0'),
  SPDXID: z.literal('SPDXRef-DOCUMENT'),
  name: Text,
  documentNamespace: z.url().regex(/^[^#]+$/),
  creationInfo: z.strictObject({
    created: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    creators: z.array(z.string().regex(/^(Tool|Person|Organization): /)).min(1),
  }),
  packages: z.array(
    z.strictObject({
      SPDXID: SpdxId,
      name: Text,
      versionInfo: Text,
      summary: Text.optional(),
      sourceInfo: Text.optional(),
      primaryPackagePurpose: z.literal('OPERATING-SYSTEM').optional(),
      downloadLocation: z.literal('NOASSERTION'),
      filesAnalyzed: z.literal(false),
      copyrightText: z.literal('NOASSERTION'),
      licenseConcluded: z.literal('NOASSERTION'),
      licenseDeclared: Text,
      externalRefs: z
        .array(
          z.strictObject({
            referenceCategory: z.literal('PACKAGE-MANAGER'),
            referenceType: z.literal('purl'),
            referenceLocator: z
              .string()
              .regex(/^pkg:(deb|rpm|apk)\/[a-z0-9.-]+\/[A-Za-z0-9._~%:-]+@[A-Za-z0-9._~%:-]+\?[a-z]+=[\w.~%:&=-]+$/),
          }),
        )
        .optional(),
    }),
  ),
  hasExtractedLicensingInfos: z
    .array(z.strictObject({ licenseId: z.string().regex(/^LicenseRef-[A-Za-z0-9.-]+$/), extractedText: Text }))
    .min(1)
    .optional(),
  relationships: z.array(
    z.strictObject({
      spdxElementId: SpdxId,
      relationshipType: z.enum(['DESCRIBES', 'CONTAINS']),
      relatedSpdxElement: SpdxId,
    }),
  ),
})

const awkward = (name: string, licence?: string): InstalledPackage => ({
  name,
  version: '1:2.0~rc1+x^3_4-5',
  arch: 'x86_64',
  manager: 'rpm',
  ...(licence !== undefined && { licence }),
  size: 1,
})

test.each<[string, InstalledPackage[]]>([
  ['none at all', []],
  ['two', [BASH, GCC]],
  [
    'names that only differ in what an id cannot hold',
    [awkward('g++'), awkward('g--'), awkward('g+-'), awkward('g_-'), awkward('G--')],
  ],
  [
    'licences likewise',
    [
      awkward('a', 'GPLv2+'),
      awkward('b', 'GPLv2-'),
      awkward('c', 'GPLv2+'),
      awkward('d', 'MIT'),
      awkward('e', 'GPL-2.0-only AND MIT'),
      awkward('f', 'ä ö'.repeat(300)),
    ],
  ],
])('is SPDX 2.3: %s', (_, packages) => {
  const document = Document.parse(JSON.parse(sbomText(input(packages))))
  const ids = document.packages.map(({ SPDXID }) => SPDXID)
  expect(new Set(ids).size).toBe(packages.length + 1)
  expect(document.relationships.map(relation => relation.relatedSpdxElement)).toEqual(ids)
  const refs = new Map(document.hasExtractedLicensingInfos?.map(info => [info.licenseId, info.extractedText]))
  const declared = document.packages.slice(1).map(one => refs.get(one.licenseDeclared) ?? one.licenseDeclared)
  expect(declared).toEqual(
    packages.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ licence }) => licence ?? 'NOASSERTION'),
  )
})

test('the same bytes whatever order the packages come in', () => {
  expect(sbomText(input([BASH, GCC]))).toBe(sbomText(input([GCC, BASH, BASH])))
})

test('without an os-release', () => {
  const document = Document.parse(JSON.parse(sbomText({ ...input([BASH]), os: undefined })))
  expect(document.packages[0]?.summary).toBeUndefined()
  expect(document.packages[1]?.externalRefs?.[0]?.referenceLocator).toBe('pkg:deb/debian/bash@5.2.15-2%2Bb2?arch=amd64')
})
