import { z } from 'zod'
import { canonicalAddress, isAddress, parseNetwork } from '../lib/ip.ts'
import { parseSize } from '../lib/size.ts'
import { ModuleFile } from './module.ts'
import { READY_NAMES } from './ready-files.ts'
import { Recipe } from './recipe.ts'
import { Switch, SwitchName } from './switches.ts'
import { Command, FileMode, LinkTarget, Name, NodePath, Owner, text } from './values.ts'

/**
 * What may stand in the files of a site. From these schemas come the checks, the editor's JSON Schema and the reference.
 *
 * Any value of a layer may be a template instead (`port: "{{ index }}"`); it is checked against the same schema once it
 * has been rendered for a node, see resolve.ts.
 */
export const NO_TEMPLATE = 'is not a template'
const TemplateText = z.string().regex(/\{\{|\{%/, { error: NO_TEMPLATE, abort: true })
const templated = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, TemplateText])

/** A value encrypted with age: `!age …` in the file, this in resolved values. Nobody prints it. */
export const NO_SECRET = 'must be a secret: set it with muster secret set'
export const Secret = z.strictObject({ $secret: z.string() }, NO_SECRET)
export type Secret = z.infer<typeof Secret>

const Domain = text(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, 'is not a domain name').max(
  253,
)
const Mac = z
  .string()
  .toLowerCase()
  .regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, 'is not a MAC address')
const Address = z.string().refine(isAddress, 'is not an IP address').transform(canonicalAddress)
const Cidr = z
  .string()
  .refine(cidr => parseNetwork(cidr) !== undefined, { error: 'is not a network such as 10.77.0.0/16', abort: true })
  .refine(cidr => hasNoHostBits(cidr), 'has bits set behind its length: write the first address of the network')
const ImageRef = text(
  /^[a-z0-9][a-z0-9_-]*(@(sha256:[0-9a-f]{64}|[a-z0-9][a-z0-9_-]*))?$/,
  'is not an image such as compute, compute@stable or compute@sha256:…',
)
const Duration = text(/^\d+(s|m|h|d)$/, 'is not a duration such as 30s, 5m or 1h')
const Share = z.union([z.int().min(1), text(/^([1-9]\d?|100)%$/, 'is not a number of nodes or a percentage')])
const Label = z.union([z.string().min(1), z.int()]).transform(String)
const FileSource = text(/^(?!\/)(?!.*(^|\/)\.\.?(\/|$)).+$/s, 'is not a path inside files/')

const Interface = z.strictObject({
  network: templated(Name).nullish().describe('The network it is on; the one of its own name unless said.'),
  address: templated(Address).nullish().describe('Its address in that network.'),
  mac: templated(Mac).nullish().describe('Its MAC address, where the node is not known by its place.'),
  vlan: templated(z.int().min(1).max(4094)).nullish().describe('The VLAN it is tagged with.'),
})

const Location = z.strictObject({
  switch: templated(Label).nullish().describe('The switch the node is plugged into.'),
  port: templated(Label).nullish().describe('The port of that switch.'),
  rack: templated(Label).nullish().describe('The rack it stands in.'),
  slot: templated(Label).nullish().describe('Its height or slot in the rack.'),
})

const Bmc = z.strictObject({
  driver: templated(z.enum(['redfish', 'ipmi']))
    .nullish()
    .describe('How the management controller is spoken to.'),
  address: templated(Address).nullish().describe('Its address.'),
  username: templated(z.string().min(1)).nullish().describe('The user to log in as.'),
  password: Secret.nullish().describe('The password: a secret, set with `muster secret set`.'),
})

const OVERLAY = 'is neither a share of memory such as 50% nor a size such as 2 GB'
/** What may be written into a root in RAM: a share of memory, or bytes. */
const Overlay = z.union([z.string(), z.int()]).transform((value, context): string => {
  if (typeof value === 'string' && /^([1-9]\d?|100)%$/.test(value)) return value
  const bytes = parseSize(value)
  if (bytes !== undefined && bytes >= 2 ** 20) return String(bytes)
  context.addIssue({ code: 'custom', message: OVERLAY })
  return z.NEVER
})

const Boot = z.strictObject({
  from: templated(z.enum(['network', 'disk']))
    .nullish()
    .describe('Where it boots from: `network` (what everything here is about) or its own `disk`, untouched by us.'),
  image: templated(ImageRef).nullish().describe('The image it boots: NAME, NAME@CHANNEL or NAME@sha256:….'),
  root: templated(z.enum(['ram', 'projected', 'disk']))
    .nullish()
    .describe('How it gets its root file system.'),
  form: templated(z.enum(['squashfs', 'cpio']))
    .nullish()
    .describe('What a root in RAM is made of: `squashfs` with a writable overlay, or the whole image as one `cpio`.'),
  overlay: templated(Overlay)
    .nullish()
    .describe('How much may be written on top of a squashfs: a share of memory (50% unless said) or a size.'),
  args: z
    .array(templated(z.string().min(1)))
    .nullish()
    .describe('Kernel arguments.'),
})

const File = z.union([
  templated(FileSource),
  z.strictObject({
    source: templated(FileSource)
      .nullish()
      .describe('Path below files/: a template if it ends in .j2; of a folder, everything that is in it.'),
    ready: templated(z.enum(READY_NAMES))
      .nullish()
      .describe('A file that comes with muster, instead of a source: `hosts`, `chrony` and others.'),
    interface: templated(Name).nullish().describe('Of a ready-made file for one interface: which.'),
    link: templated(LinkTarget).nullish().describe('A symbolic link to this, instead of a source.'),
    absent: templated(z.boolean())
      .nullish()
      .describe('Whether there must be nothing at that path, instead of a source.'),
    owner: templated(Owner).nullish().describe('Owner of the file; root unless said.'),
    group: templated(Owner).nullish().describe('Group of the file; root unless said.'),
    mode: templated(FileMode).nullish().describe('Mode of the file, or of every file of a folder; 0644 unless said.'),
    dirMode: templated(FileMode)
      .nullish()
      .describe('Mode of a folder and of those in it. Unless said, those that are there stay as they are.'),
    when: templated(z.enum(['boot', 'live']))
      .nullish()
      .describe('`boot`: written before the system starts. `live`: then, and again while it runs when it changes.'),
    // oxlint-disable-next-line unicorn/no-thenable -- a text, which nobody takes for a promise
    then: templated(Command)
      .nullish()
      .describe('What to run after a change on a running node, once for all files that name it.'),
  }),
])

const Update = z.strictObject({
  maxUnavailable: templated(Share).nullish().describe('How many nodes of a group may be away at once.'),
  healthy: templated(Duration).nullish().describe('How long a node must be healthy before the next wave.'),
})

const layer = {
  domain: templated(Domain).nullish().describe('DNS domain of the node.'),
  boot: Boot.nullish().describe('What the node boots.'),
  interfaces: z.record(Name, Interface).nullish().describe('Network interfaces by name.'),
  location: Location.nullish().describe('Where the node is plugged in: what makes a machine this node.'),
  bmc: Bmc.nullish().describe('The management controller (BMC).'),
  files: z
    .record(NodePath, File.nullable())
    .nullish()
    .describe('Files on the node: path on the node → source below files/, or what else is to be there.'),
  update: Update.nullish().describe('How changes are rolled out.'),
  vars: z.record(z.string(), z.json()).nullish().describe("The site's own values, for use in templates."),
}

/** What any layer may say about a node. */
export const Layer = z.strictObject(layer)

export const Network = z.strictObject({
  cidr: Cidr.describe('The network, such as 10.77.0.0/16.'),
  gateway: Address.optional().describe('Its router.'),
  unknown: Cidr.optional().describe('The part of it from which unknown machines get an address.'),
  vlan: z.int().min(1).max(4094).optional().describe('Its VLAN.'),
  domain: Domain.optional().describe('DNS domain of the names in it.'),
  dhcp: z
    .boolean()
    .optional()
    .describe('Whether we give out addresses in it; so unless said in networks that have a boot server in them.'),
})
export type Network = z.infer<typeof Network>

/** How machines are booted: what is the same for the whole site. */
export const Provision = z.strictObject({
  servers: z
    .array(Address)
    .min(1)
    .optional()
    .describe('Addresses of the boot servers, in the order nodes ask them; those of the server itself unless said.'),
  port: z.int().min(1).max(65_535).default(7180).describe('Port on which boot servers answer nodes.'),
  tlsPort: z
    .int()
    .min(1)
    .max(65_535)
    .default(7181)
    .describe('Port on which nodes prove who they are and get their files, by TLS.'),
  dhcp: z
    .enum(['server', 'proxy', 'none'])
    .default('server')
    .describe('Whether we give out addresses, only answer boots beside another DHCP server, or neither.'),
  unknown: z
    .enum(['discover', 'ignore'])
    .default('discover')
    .describe(
      'What machines nobody knows get: the discovery system, where their network has addresses for them, or nothing.',
    ),
  discovery: Name.optional().describe(
    'The image whose kernel runs the discovery system; that of `defaults` unless said.',
  ),
  dns: z.array(Address).default([]).describe('Servers that are asked for names we do not know.'),
  shell: z.boolean().default(false).describe('Whether a node that cannot boot offers a root shell on its console.'),
  vlan: z.int().min(1).max(4094).optional().describe('The VLAN that loaders boot over, where the port is tagged.'),
  loaders: z
    .strictObject({
      bios: FileSource.optional().describe('For BIOS, instead of undionly.kpxe.'),
      efi64: FileSource.optional().describe('For UEFI on x86-64, instead of snponly.efi.'),
      arm64: FileSource.optional().describe('For UEFI on arm64.'),
    })
    .default({})
    .describe("The site's own iPXE loaders: paths below files/."),
})
export type Provision = z.infer<typeof Provision>

const Day = z.iso.date('is not a day such as 2027-12-31')

/** Whose signatures under images are believed. */
export const Trust = z.strictObject({
  keys: z
    .record(
      Name,
      z.strictObject({
        public: text(/^ed25519:[A-Za-z0-9+/]{43}=$/, 'is not a public key (ed25519:…)').describe(
          'The public half, as `muster key new` prints it.',
        ),
        until: Day.optional().describe('The last day on which new signatures of it are taken.'),
        revoked: Day.optional().describe('Since when nothing it ever signed is believed any more.'),
      }),
    )
    .default({})
    .describe('Keys by name.'),
  ca: text(/^[0-9a-f]{64}$/, 'is not the SHA-256 of a certificate (muster ca show)')
    .optional()
    .describe(
      'Of the certificate by which nodes know boot servers: in the initramfs of images built from then on, no other is believed.',
    ),
})
export type Trust = z.infer<typeof Trust>

/** What an image must have shown before a channel may point to it. */
export const Channel = z.strictObject({
  tests: z
    .array(z.enum(['root', 'container', 'vm']))
    .optional()
    .describe('Where its tests must have passed; wherever it has some unless said.'),
  signed: z.array(Name).min(1).optional().describe('Keys of `trust`: one of them must have signed it.'),
  after: z
    .strictObject({
      channel: Name.describe('The channel it must have been in.'),
      time: Duration.describe('For how long.'),
    })
    .optional()
    .describe('Where it must have proved itself before.'),
  size: z
    .union([z.int().min(1), z.string()])
    .refine(size => parseSize(size) !== undefined, 'is not a size such as 900 MB or 2 GB')
    .optional()
    .describe('How large its root may be.'),
})
export type Channel = z.infer<typeof Channel>

const GroupNames = z.array(Name)

export const NodeEntry = z.strictObject({
  ...layer,
  groups: GroupNames.nullish().describe('The groups of these nodes: later ones override earlier ones.'),
})

/** One schema per kind of file. */
export const fileSchemas = {
  site: z.strictObject({
    site: Name.describe('Name of the site.'),
    domain: Domain.nullish().describe('DNS domain of all nodes.'),
    networks: z.record(Name, Network).nullish().describe('Networks by name.'),
    switches: z
      .record(SwitchName, Switch)
      .optional()
      .describe(
        'Switches by name: how they say which port a machine is plugged into, and which nodes their ports are.',
      ),
    provision: Provision.optional().describe('How machines are booted.'),
    secrets: z
      .strictObject({
        recipients: z
          .array(text(/^age1[0-9a-z]{58}$/, 'is not an age recipient (age1…)'))
          .min(1)
          .describe('Public keys; whoever has one of the private keys can open every secret.'),
      })
      .optional()
      .describe('For whom secrets are encrypted.'),
    modules: z
      .record(
        Name,
        z.strictObject({
          git: text(
            /^(https|ssh|git|file):\/\/[^\s\0]+$/,
            'is not an address such as https://git.example/modules.git',
          ).describe('Address of the repository.'),
          commit: text(/^[0-9a-f]{40}$/, 'is not a whole commit id (40 hex digits)').describe(
            'The commit it is pinned to.',
          ),
          path: z.string().optional().describe('The folder in it that holds the modules; its top unless said.'),
        }),
      )
      .optional()
      .describe('Git repositories with shell modules for images.'),
    trust: Trust.optional().describe('Whose signatures under images are believed.'),
    channels: z
      .record(Name, Channel)
      .optional()
      .describe('What images must have shown before a channel of that name may point to them.'),
    defaults: Layer.nullish().describe('The lowest layer: what every node gets.'),
  }),
  cluster: z.strictObject({
    ...layer,
    nodes: z.string().min(1).describe('The nodes of this cluster, as a node set.'),
  }),
  group: z.strictObject({
    ...layer,
    groups: GroupNames.nullish().describe('Groups this one builds on: they come first.'),
  }),
  nodes: z.record(z.string(), NodeEntry.nullable()).describe('Node set → what is particular to these nodes.'),
  image: Recipe,
  module: ModuleFile,
} as const
export type FileKind = keyof typeof fileSchemas

function hasNoHostBits(cidr: string): boolean {
  const network = parseNetwork(cidr)
  return network === undefined || canonicalAddress(cidr.split('/')[0] ?? '') === network.base
}

/**
 * The schema of one value of a layer: leafSchema(['boot', 'root']) → ram | projected | disk.
 * Undefined below `vars`, where anything goes, and at paths that are maps.
 */
export function leafSchema(path: readonly string[]): z.ZodType | undefined {
  let schema: z.ZodType | undefined = NodeEntry
  for (const key of path) {
    schema = childSchema(unwrap(schema), key)
    if (schema === undefined) return undefined
  }
  const leaf = unwrap(schema)
  return leaf instanceof z.ZodObject || leaf instanceof z.ZodRecord ? undefined : leaf
}

function childSchema(schema: z.ZodType, key: string): z.ZodType | undefined {
  if (schema instanceof z.ZodObject) return schema.shape[key] as z.ZodType | undefined
  if (schema instanceof z.ZodRecord) return schema.valueType as z.ZodType
  if (schema instanceof z.ZodUnion) {
    const inside = schema.options.find(option => option instanceof z.ZodObject)
    return inside === undefined ? undefined : childSchema(inside, key)
  }
  return undefined
}

/** Without `optional`, and of `templated(schema)` the schema. */
function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return unwrap(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodUnion && schema.options.at(-1) === TemplateText) return schema.options[0] as z.ZodType
  return schema
}
