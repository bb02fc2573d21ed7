import { z } from 'zod'
import { ROLES, Role } from '../control/actor.ts'
import { Generation } from '../control/generations.ts'
import { Move } from '../images/moves.ts'
import { Artefact, Digest, Manifest } from '../images/manifest.ts'
import { Machine } from '../nodes/machines.ts'
import { Place } from '../nodes/places.ts'
import { Swap } from '../nodes/swaps.ts'
import { Mac } from '../nodes/mac.ts'
import { Phase } from '../nodes/phases.ts'
import { Observed } from '../state/observed.ts'

/** What the API says and hears, beyond what the parts below define themselves. */
export const ProblemReply = z.strictObject({
  code: z.string().describe('Stable name of the error.'),
  message: z.string(),
  hint: z.string().describe('What to do next.'),
  details: z.array(z.string()).describe('Findings, one a line, such as file:line:column: what.'),
})
export type ProblemReply = z.infer<typeof ProblemReply>

export const NodeItem = z.strictObject({
  name: z.string(),
  cluster: z.string(),
  groups: z.array(z.string()),
  image: z.string().nullable(),
  address: z.string().nullable(),
  observed: Observed,
  revision: z.int().describe('Of the last change of its desired state.'),
})
export type NodeItem = z.infer<typeof NodeItem>

export const NodePage = z.strictObject({
  items: z.array(NodeItem),
  next: z.string().nullable().describe('Pass as `after` to get the next page; null on the last.'),
})

export const SwapReply = z.strictObject({
  ...Swap.omit({ running: true }).shape,
  running: z
    .array(z.strictObject({ mac: z.string(), node: z.string() }))
    .describe('Machines that have yet to boot, and as what they run.'),
})
export type SwapReply = z.infer<typeof SwapReply>
export const SwapNodes = z.strictObject({
  with: z.string().min(1).max(63).describe('The node it changes machines with.'),
  why: z.string().min(1).max(500).optional(),
})

export const NodeDetail = z.strictObject({
  name: z.string(),
  desired: z.record(z.string(), z.unknown()),
  observed: Observed,
  swap: SwapReply.optional().describe('Whose machine it has instead of its own.'),
  revision: z.int(),
})
export type NodeDetail = z.infer<typeof NodeDetail>

const SourceReply = z.strictObject({ layer: z.string(), file: z.string(), line: z.int(), column: z.int() })
const Replaced = z.strictObject({ ...SourceReply.shape, value: z.unknown() })
export const ExplanationReply = z.strictObject({
  path: z.string(),
  value: z.unknown(),
  written: z.unknown().optional(),
  from: SourceReply,
  overrides: z.array(Replaced),
  appendsTo: z.array(Replaced),
})

export const DiffReply = z.strictObject({
  added: z.string(),
  removed: z.string(),
  changes: z.array(
    z.strictObject({
      nodes: z.string(),
      count: z.int(),
      path: z.string(),
      summary: z.string(),
      at: z.string().optional(),
    }),
  ),
  nodes: z.int(),
})

export const PlanReply = z.strictObject({
  generation: z.int().describe('The generation in force; 0 before the first.'),
  commit: z.string(),
  tree: z.string(),
  dirty: z.array(z.string()),
  diff: DiffReply,
})
export type PlanReply = z.infer<typeof PlanReply>

export const AppliedReply = z.strictObject({ generation: Generation, diff: DiffReply, unchanged: z.boolean() })
export type AppliedReply = z.infer<typeof AppliedReply>

export const GenerationList = z.strictObject({ items: z.array(Generation) })

export const EventReply = z.strictObject({
  revision: z.int(),
  time: z.string(),
  kind: z.string(),
  nodes: z.string().optional(),
  actor: z.string(),
  from: z.string().optional(),
  cause: z.string().optional(),
  trace: z.string().optional(),
  data: z.unknown().optional(),
})
export type EventReply = z.infer<typeof EventReply>

export const EventPage = z.strictObject({ items: z.array(EventReply), next: z.int().nullable() })

/** Not z.json(): the editor of files bounds depth, and says so better. */
const Settings = z.record(z.string().min(1).max(1000), z.unknown())
export const Message = z.string().min(1).max(10_000).optional().describe('Commit message; a fitting one unless given.')

export const AddNodes = z.strictObject({
  nodes: z.string().min(1).max(100_000).describe('Node set.'),
  set: Settings.default({}).describe('Dotted path → value.'),
  cluster: z.string().max(63).optional().describe('Cluster to put them into, where the site has several.'),
  file: z
    .string()
    .regex(/^nodes(\/[a-z0-9_-]+)?\.yaml$/)
    .optional()
    .describe('nodes.yaml or nodes/NAME.yaml'),
  message: Message,
})
export const SetNodes = z.strictObject({ nodes: z.string().min(1).max(100_000), set: Settings, message: Message })
export const RemoveNodes = z.strictObject({ nodes: z.string().min(1).max(100_000), message: Message })
export const AddGroup = z.strictObject({ name: z.string().min(1).max(63), set: Settings.default({}), message: Message })
export const SetGroup = z.strictObject({ set: Settings, message: Message })
export const RemoveGroup = z.strictObject({ message: Message })
export const EditReply = z.strictObject({ commit: z.string(), files: z.array(z.string()) })

export const GroupList = z.strictObject({
  items: z.array(z.strictObject({ name: z.string(), nodes: z.string(), count: z.int() })),
})

export const TokenReply = z.strictObject({
  id: z.string(),
  name: z.string(),
  role: Role,
  createdAt: z.string(),
  createdBy: z.string(),
  expiresAt: z.string(),
})
export const CreateToken = z.strictObject({
  name: z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$/, 'letters, digits, . _ -'),
  role: z.enum(ROLES),
  seconds: z
    .int()
    .min(60)
    .max(366 * 86_400)
    .describe('How long it is valid.'),
})
export const CreatedToken = z.strictObject({ token: z.string().describe('Shown once, never again.'), info: TokenReply })
export const TokenList = z.strictObject({ items: z.array(TokenReply) })

const CertificateReply = z.strictObject({
  subject: z.string(),
  fingerprint: z.string().describe('SHA-256 of the certificate.'),
  from: z.string(),
  until: z.string(),
})
export const AuthorityReply = z.strictObject({
  authority: CertificateReply,
  sha256: z.string().describe('Of the text of the certificate, as nodes are told it.'),
  certificate: z.string().describe('PEM.'),
  server: z
    .strictObject({ ...CertificateReply.shape, hosts: z.array(z.string()).describe('Addresses and names.') })
    .optional()
    .describe('Absent until somebody listens.'),
})
export type AuthorityReply = z.infer<typeof AuthorityReply>

export const StatusReply = z.strictObject({
  version: z.string(),
  site: z.string(),
  revision: z.int(),
  nodes: z.int(),
  generation: Generation.nullable(),
  role: Role.describe('Of whoever asks.'),
})

export const ImageItem = z.strictObject({
  name: z.string(),
  digest: Digest,
  created: z.string().describe('Time of its inputs.'),
  built: z.string().describe('When it became the newest of its name.'),
  size: z
    .int()
    .nullable()
    .describe('Bytes of all files in its root; null, as what follows, when its manifest is damaged.'),
  arch: Manifest.shape.arch.nullable(),
  os: z.string().nullable().describe('Name of its operating system; null when it has none.'),
  kernel: z.string().nullable().describe('Release of its kernel; null when it has none.'),
})
export type ImageItem = z.infer<typeof ImageItem>
export const ImageList = z.strictObject({ items: z.array(ImageItem) })
export const ImageNameReply = z.strictObject({ name: z.string(), digest: Digest })

const Reason = z.string().max(500).default('').describe('Why, for the history.')
export const ChannelItem = z.strictObject({
  name: z.string().describe('Name of the images.'),
  channel: z.string(),
  digest: Digest.describe('What it points to.'),
  moves: z.array(Move).describe('Every move of it, newest first.'),
})
export type ChannelItem = z.infer<typeof ChannelItem>
export const ChannelList = z.strictObject({ items: z.array(ChannelItem) })
export const PromoteBody = z.strictObject({
  image: z.string().max(200).describe('NAME for the newest, NAME@sha256:…, or NAME@CHANNEL for what that points to.'),
  reason: Reason,
})
export const RollbackBody = z.strictObject({ reason: Reason })
export const ChannelMoved = z.strictObject({
  name: z.string(),
  channel: z.string(),
  digest: Digest.describe('What it points to now.'),
  before: Digest.nullable().describe('What it pointed to before.'),
  isUnchanged: z.boolean().describe('Whether it pointed there already.'),
})
export const ChannelForgotten = z.strictObject({
  name: z.string(),
  channel: z.string(),
  freed: z.array(Digest).describe('Images that are off the list with it.'),
})
export type ChannelForgotten = z.infer<typeof ChannelForgotten>
export type ChannelMoved = z.infer<typeof ChannelMoved>

export const Sha256 = Artefact.shape.sha256
export const BlobReply = z.strictObject({ sha256: Sha256, size: z.int() })
export const MissingBlobs = z.strictObject({ digests: z.array(Sha256).max(10_000) })

const PhaseTimeReply = z.strictObject({
  phase: Phase,
  at: z.string().describe('When it was entered.'),
  seconds: z.number().optional().describe('How long it took; absent for the one it is in.'),
})
export const BootReply = z.strictObject({
  id: z.string().optional().describe('The same from the script to the agent.'),
  mac: z.string(),
  image: z.string().optional().describe('Digest of the image it was given.'),
  phases: z.array(PhaseTimeReply),
  failed: z.strictObject({ at: z.string(), reason: z.string() }).optional(),
  last: z.strictObject({ at: z.string(), what: z.string() }).describe('The last thing that was seen of it.'),
})
export type BootReply = z.infer<typeof BootReply>
export const TimelineReply = z.strictObject({ node: z.string(), boots: z.array(BootReply).describe('Newest first.') })
export type TimelineReply = z.infer<typeof TimelineReply>

export const BootExplanation = z.strictObject({
  node: z.string(),
  boots: z
    .enum(['image', 'disk', 'refuse'])
    .describe('What it is given: an image, its own disk, or a message why not.'),
  image: z.string().optional(),
  form: z.enum(['squashfs', 'cpio']).optional(),
  problem: z.string().optional(),
  hint: z.string().optional(),
  because: z.array(z.string()).describe('One sentence each.'),
  servers: z.array(z.string()).describe('Boot servers in the order it asks them.'),
  script: z.string().describe('What its loader is given.'),
  last: BootReply.optional(),
})
export type BootExplanation = z.infer<typeof BootExplanation>

export const MachineReply = z.strictObject({
  ...Machine.shape,
  node: z.string().nullable().describe('The node it is, by its MAC or its place.'),
  place: Place.optional().describe('Where it was seen to be plugged in.'),
  note: z.string().optional().describe('Why it is no node, or what is unusual about it.'),
})
export type MachineReply = z.infer<typeof MachineReply>
export const MachineList = z.strictObject({ items: z.array(MachineReply) })
export const AdoptMachine = z.strictObject({ node: z.string().min(1).max(63), message: Message })
export const AdoptedReply = z.strictObject({
  machine: z.string(),
  node: z.string(),
  commit: z.string(),
  generation: z.int(),
})
export const PutPlaces = z.strictObject({
  places: z
    .array(z.strictObject({ mac: Mac, switch: z.string().min(1).max(128), port: z.string().min(1).max(128) }))
    .min(1)
    .max(50_000),
  source: z.string().min(1).max(64).default('operator').describe('Who says so.'),
})

export const FileItem = z.strictObject({
  kind: z.enum(['file', 'dir', 'link', 'absent']),
  path: z.string(),
  when: z.enum(['boot', 'live']).describe('Written before the system starts, or then and whenever it changes.'),
  mode: z.string().optional(),
  owner: z.string().optional(),
  group: z.string().optional(),
  size: z.int().optional(),
  sha256: z.string().optional(),
  secret: z
    .literal(true)
    .optional()
    .describe('There is a secret in it: of that there is neither content nor digest here.'),
  content: z.string().optional().describe('What is in it, if it was asked for.'),
  run: z.string().optional().describe('What is run after a change on a running node.'),
  target: z.string().optional().describe('Of a link.'),
})
export type FileItem = z.infer<typeof FileItem>

export const NodeFilesReply = z.strictObject({
  node: z.string(),
  version: z.string().nullable().describe('Of the list of all its files, as they are to be; null if it gets none.'),
  has: z
    .strictObject({ version: z.string(), since: z.string() })
    .nullable()
    .describe('The version it said it has; null if it never did.'),
  differences: z
    .array(
      z.strictObject({
        path: z.string(),
        change: z.enum(['missing', 'unwanted', 'different']),
        what: z.array(z.string()).readonly().describe('What is different: content, mode, owner …'),
      }),
    )
    .nullable()
    .describe('What it has against what it is to have; null if that is not known.'),
  files: z.array(FileItem),
  problems: z
    .array(
      z.strictObject({
        path: z.string(),
        source: z.string(),
        reason: z.string(),
        kept: z.boolean().describe('It has the last good one.'),
      }),
    )
    .describe('What could not be rendered.'),
})
export type NodeFilesReply = z.infer<typeof NodeFilesReply>
