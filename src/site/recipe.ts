import { z } from 'zod'
import { parseSize } from '../lib/size.ts'
import { whyTakenOut } from './leftovers.ts'
import { EnvName, FileMode, FileTarget, Name, PackageName, UserName, text } from './values.ts'

/**
 * What may stand in images/NAME/image.yaml. Any text may be a template over the site's `vars`; it is rendered before it is
 * held against this schema (render-recipe.ts), so the schema speaks of plain values only.
 */
const Path = text(/^(?!\/)(?!.*(^|\/)\.\.?(\/|$))[^\0]+$/s, 'is not a path inside the folder of the recipe')
/** Of archives and directories that may lie anywhere on the machine that builds. */
const AnyPath = text(/^[^\0]+$/, 'is not a path')
const Url = text(/^(https?|file|ftp):\/\/[^\s\0]+$/, 'is not an address such as http://mirror.example/debian')
const Suite = text(/^[A-Za-z0-9][A-Za-z0-9._/-]*$/, 'is not a suite such as bookworm')
const Component = text(/^[A-Za-z0-9][A-Za-z0-9._/-]*$/, 'is not a component such as main')
const Size = z
  .union([z.int().min(1), z.string()])
  .transform(size => parseSize(size))
  .refine(size => size !== undefined, 'is not a size such as 900 MB or 2 GB')
  .refine(size => size !== 0, 'must be at least 1')
  .transform(size => size ?? 0)
/** What could not stay there is no place for a file. */
const Place = FileTarget.refine(target => whyTakenOut(target) === undefined, {
  error: ({ input }) => whyTakenOut(String(input)) ?? '',
})
const Glob = text(
  /^(locales|documentation|caches|\/[^\0]*)$/,
  'is not locales, documentation, caches or a path such as /usr/share/icons',
)

const Debian = z.strictObject({
  suite: Suite.describe('The release, such as bookworm.'),
  mirrors: z
    .array(Url)
    .min(1)
    .optional()
    .describe("Where packages come from, tried in this order; what this machine's own apt uses unless said."),
  components: z.array(Component).min(1).default(['main']).describe('Parts of the archive; main unless said.'),
  keyring: Path.optional().describe("Keys that sign the archive; Debian's own unless said."),
})

const Dnf = z.strictObject({
  release: z
    .union([z.string().min(1), z.number()])
    .transform(String)
    .describe('What $releasever stands for: 9, 41, 15.6.'),
  family: z.enum(['redhat', 'suse']).default('redhat').describe('Whose package names shell modules use.'),
  database: FileTarget.optional().describe(
    'Where the distribution keeps its package database; /var/lib/rpm, or /usr/lib/sysimage/rpm for SUSE and for releases from 10 on.',
  ),
  platform: z.string().optional().describe('Such as platform:el9, where repositories have module streams.'),
})

const shorthand = <Schema extends z.ZodType>(schema: Schema, key: string) =>
  z.preprocess(value => (typeof value === 'string' || typeof value === 'number' ? { [key]: value } : value), schema)

/** Exactly one of these; a key that is none of them names an executable in bases/. */
export const bases = {
  debian: shorthand(Debian, 'suite').describe('Debian or a derivative, by mmdebstrap.'),
  dnf: shorthand(Dnf, 'release').describe('Red Hat family and SUSE, by dnf from the repositories below.'),
  oci: z
    .string()
    .regex(
      /^(docker:\/\/|oci:|oci-archive:|docker-archive:)\S+$/,
      'is not docker://…, oci:…, oci-archive:… or docker-archive:…',
    )
    .describe(
      'A container image: docker://REGISTRY/NAME:TAG, oci:DIRECTORY[:TAG], oci-archive:FILE, docker-archive:FILE.',
    ),
  tar: AnyPath.describe('An archive of a root, also compressed.'),
  directory: AnyPath.describe('A directory that holds a root.'),
  image: Name.describe('Another image of the site, or one that was imported.'),
} as const
export type BaseKind = keyof typeof bases

export const KIND = /^[a-z][a-z0-9_-]*$/

const From = z
  .object({
    debian: bases.debian.optional(),
    dnf: bases.dnf.optional(),
    oci: bases.oci.optional(),
    tar: bases.tar.optional(),
    directory: bases.directory.optional(),
    image: bases.image.optional(),
  } satisfies Record<BaseKind, z.ZodType>)
  .catchall(z.unknown())
  .superRefine((from, context) => {
    const kinds = Object.keys(from)
    if (kinds.length !== 1) {
      const what = kinds.length === 0 ? 'is empty' : `has ${kinds.join(' and ')}`
      context.addIssue({ code: 'custom', message: `${what}: it must name one base` })
    }
    for (const kind of kinds.filter(name => !KIND.test(name)))
      context.addIssue({
        code: 'invalid_key',
        origin: 'record',
        path: [kind],
        issues: [{ code: 'custom', path: [], message: 'is not a kind of base' }],
      })
  })
  .transform((from): Base => {
    const [kind = '', settings] = Object.entries(from)[0] ?? []
    return (Object.hasOwn(bases, kind) ? { kind, settings } : { kind: 'own', name: kind, settings }) as Base
  })

export type Base =
  | { readonly kind: 'debian'; readonly settings: z.infer<typeof Debian> }
  | { readonly kind: 'dnf'; readonly settings: z.infer<typeof Dnf> }
  | { readonly kind: 'oci' | 'tar' | 'directory' | 'image'; readonly settings: string }
  | { readonly kind: 'own'; readonly name: string; readonly settings: unknown }

const Repository = z.strictObject({
  url: Url.describe('Its address.'),
  suite: Suite.optional().describe('apt: the suite; a flat repository has none.'),
  components: z.array(Component).min(1).optional().describe('apt: its components.'),
  key: Path.optional().describe('The key that signs it: a file beside the recipe.'),
  trusted: z.boolean().optional().describe('true takes what it gives without a signature.'),
})
export type Repository = z.infer<typeof Repository>

const RecipeFile = z.union([
  Path,
  z.strictObject({
    source: Path.describe('File or folder beside the recipe.'),
    owner: UserName.optional().describe('Owner, as the image knows it; root unless said.'),
    group: UserName.optional().describe('Group; root unless said.'),
    mode: FileMode.optional().describe('Mode; 0644, or 0755 for what is executable here.'),
  }),
])

// A NUL would end the value in the middle.
const EnvValue = z
  .union([z.string(), z.number(), z.boolean()])
  .transform(String)
  .refine(value => !value.includes('\0'), 'must not hold a NUL byte')

const common = {
  name: z.string().min(1).max(60).optional().describe('How it is called in the output.'),
  network: z.boolean().default(false).describe('Whether it may reach the network; what it fetches is not locked.'),
  env: z.record(EnvName, EnvValue).default({}).describe('Environment variables.'),
}

const Step = z
  .strictObject({
    ...common,
    run: z.string().min(1).optional().describe('Lines of shell, run in the root with sh -eu.'),
    script: Path.optional().describe('A program beside the recipe, run in the root.'),
    ansible: text(
      /^(?!\/)(?!.*(^|\/)\.\.?(\/|$))[^\0/]+\/[^\0]+$/s,
      'must be a playbook in a folder of its own, such as ansible/play.yaml',
    )
      .optional()
      .describe('A playbook; everything in its folder counts as input.'),
    vars: z.record(z.string(), z.json()).optional().describe('ansible: variables for the playbook.'),
    modules: z.array(Name).min(1).optional().describe('Shell modules, with those they require.'),
  })
  .superRefine((step, context) => {
    const kinds = STEP_KINDS.filter(kind => step[kind] !== undefined)
    if (kinds.length !== 1) {
      const what = kinds.length === 0 ? 'does nothing' : `has ${kinds.join(' and ')}`
      context.addIssue({ code: 'custom', message: `${what}: a step is one of ${STEP_KINDS.join(', ')}` })
    }
    if (step.vars !== undefined && step.ansible === undefined)
      context.addIssue({ code: 'custom', path: ['vars'], message: 'belongs to an ansible step' })
  })
const STEP_KINDS = ['run', 'script', 'ansible', 'modules'] as const
export type Step = z.infer<typeof Step>

export const OUTPUTS = ['squashfs', 'cpio.zst', 'cpio.gz', 'erofs'] as const

export const Recipe = z.strictObject({
  from: From.describe(
    'What the image starts from: one of debian, dnf, oci, tar, directory, image, or a base of the site.',
  ),
  arch: z.enum(['amd64', 'arm64']).optional().describe('Architecture; that of this machine unless said.'),
  group: z
    .union([Name, z.array(Name)])
    .optional()
    .describe('The groups of the site whose `vars` the templates of this recipe see.'),
  vars: z.record(z.string(), z.json()).default({}).describe("Values for templates; the site's layers override them."),
  repositories: z.record(Name, Repository).default({}).describe('Package repositories by name.'),
  packages: z.array(PackageName).default([]).describe('Packages to install, with what they depend on.'),
  files: z
    .record(Place, RecipeFile)
    .default({})
    .describe('Target path → file or folder beside the recipe; *.j2 are templates.'),
  steps: z.array(Step).default([]).describe('What is done next, in this order.'),
  prune: z
    .array(Glob)
    .default([])
    .describe('What is taken out: locales, documentation, caches, or paths with * and **.'),
  limits: z
    .strictObject({ size: Size.optional().describe('The largest the root may be, such as 2 GB.') })
    .default({})
    .describe('What a build may not exceed.'),
  kernel: z
    .union([
      z.literal('none'),
      z.strictObject({
        version: z
          .string()
          .min(1)
          .default('*')
          .describe('Which kernel of the root, with *; the newest of those that match.'),
        modules: z
          .array(text(/^[A-Za-z0-9_-]+$/, 'is not the name of a kernel module'))
          .default([])
          .describe('Modules the initramfs carries beside the usual ones.'),
      }),
    ])
    .optional()
    .describe('The kernel it boots with; `none` for an image that is only a container.'),
  outputs: z
    .array(z.enum(OUTPUTS))
    .min(1)
    .default(['squashfs', 'cpio.zst'])
    .describe('Forms of the root that are made.'),
})
export type Recipe = z.infer<typeof Recipe>
