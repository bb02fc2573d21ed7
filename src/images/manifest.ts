import { z } from 'zod'

/**
 * An image is this document: what it is made of, by digest, and where it comes from. Its own digest, the sha256 of its
 * canonical text, is the image's identity. The JSON Schema is in docs/reference/manifest.json.
 */
const Hex = z.string().regex(/^[0-9a-f]{64}$/, 'is not a sha256 in hex')
export const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'is not a digest such as sha256:…')
export type Digest = `sha256:${string}`

export const ARTEFACT_TYPES = [
  'kernel',
  'initrd',
  'cpio.zst',
  'cpio.gz',
  'squashfs',
  'erofs',
  'files',
  'packages',
  'sbom',
  'log',
  'lock',
] as const
export type ArtefactType = (typeof ARTEFACT_TYPES)[number]

export const Artefact = z.strictObject({
  type: z.enum(ARTEFACT_TYPES).describe('What it is: kernel, a form of the root, or something about the image.'),
  sha256: Hex.describe('Digest of its bytes.'),
  size: z.int().min(0).describe('Its length in bytes.'),
})
export type Artefact = z.infer<typeof Artefact>

export const Manifest = z.strictObject({
  schema: z.literal('muster.image/1').describe('Kind and version of this document.'),
  name: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/, 'is not a name of an image')
    .describe('Name of the image.'),
  arch: z.enum(['amd64', 'arm64']).describe('Architecture, as Debian names it.'),
  created: z.iso.datetime().describe('Time of the inputs: of the commit, or of the lock where there is no git.'),
  inputs: Digest.describe('Digest of everything that went into it.'),
  tree: Digest.describe('Digest of the list of files in the root.'),
  source: z
    .strictObject({
      commit: z.string().describe('The last commit that changed its inputs.'),
      branch: z.string().optional().describe('The branch that was checked out.'),
      dirty: z.boolean().describe('Whether inputs had changes that were not committed.'),
    })
    .optional()
    .describe('Where the recipe comes from; nothing for an imported image.'),
  base: z
    .strictObject({
      name: z.string().describe('Its name.'),
      inputs: Digest.describe('Digest of what went into its layers.'),
    })
    .optional()
    .describe('The image it is built on.'),
  os: z
    .strictObject({
      id: z.string().describe('ID, such as debian.'),
      version: z.string().optional().describe('VERSION_ID, such as 12.'),
      name: z.string().optional().describe('For people.'),
    })
    .optional()
    .describe('What /etc/os-release says.'),
  kernel: z
    .strictObject({
      version: z.string().describe('Its release, as uname -r prints it.'),
      modules: z.array(z.string()).describe('Modules the initramfs carries beside the usual ones.'),
    })
    .optional()
    .describe('The kernel it boots with.'),
  tests: z
    .strictObject({
      digest: Digest.describe('Digest of the folder of tests.'),
      places: z.array(z.enum(['root', 'container', 'vm'])).describe('Where they have to pass.'),
    })
    .optional()
    .describe('What it must pass before it may reach a node.'),
  size: z.int().min(0).describe('Bytes of all files in the root.'),
  artefacts: z.array(Artefact).describe('Everything it is made of.'),
})
export type Manifest = z.infer<typeof Manifest>

/** The one text of a manifest: what is stored, hashed and signed. */
export const manifestText = (manifest: Manifest): string => `${JSON.stringify(Manifest.parse(manifest), null, 2)}\n`

export const artefactOf = (manifest: Manifest, type: ArtefactType): Artefact | undefined =>
  manifest.artefacts.find(artefact => artefact.type === type)
