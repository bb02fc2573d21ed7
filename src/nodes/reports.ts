import { z } from 'zod'
import { Mac } from './mac.ts'
import { Phase } from './phases.ts'

/**
 * What nodes say. None of it is trusted: it is bounded, holds only what is expected, and never becomes part of a path, a
 * command or a template. What is too long or too much is cut off rather than refused: a node with thirty failed checks or two
 * hundred interfaces must be heard all the same.
 */
export const BootId = z.string().regex(/^([0-9a-f]{16}){1,2}$/, 'is not the id of a boot')
const line = (most: number) =>
  z.string().transform(text =>
    text
      .slice(0, most)
      .toWellFormed()
      .replaceAll(/[^\x20-\x7e\u00a0-\uffff]/g, '?'),
  )
const several = <Item extends z.ZodType>(item: Item, most: number) =>
  z
    .array(item)
    .transform(items => items.slice(0, most))
    .default([])
/** The longest time ago that anybody needs to know of. */
const LONG_AGO = 30 * 86_400
/** An option of DHCP has no more than 255 bytes. */
const OptionBytes = z
  .string()
  .max(510)
  .regex(/^([0-9a-f]{2})*$/)
const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/)

/** A step of a boot, told by initramfs or agent. */
export const PhaseReport = z.object({
  boot: BootId,
  mac: Mac,
  phase: Phase.extract(['initrd', 'fetch', 'root', 'agent', 'ready']).or(z.literal('failed')),
  /** Seconds since it began. Servers may have been away for days: then it is told late, but told. */
  ago: z
    .number()
    .min(0)
    .transform(seconds => Math.min(seconds, LONG_AGO))
    .default(0),
  detail: line(500).optional(),
})
export type PhaseReport = z.infer<typeof PhaseReport>

export const Health = z.strictObject({ status: z.enum(['ok', 'degraded', 'bad']), reason: line(500).default('') })

/** Which list of files is in force on the node, and what is wrong with it. */
export const FilesStatus = z.strictObject({
  version: z.string().regex(/^([0-9a-f]{16})?$/),
  problem: line(300).default(''),
})

/** What the agent says every ten seconds. */
export const Heartbeat = z.object({
  boot: BootId,
  mac: Mac,
  node: z.string().max(63).default(''),
  hostname: line(253).default(''),
  image: Digest.optional().or(z.literal('').transform(() => undefined)),
  kernel: line(100).default(''),
  addresses: several(line(64), 32),
  uptime: z.number().min(0).optional(),
  health: Health.default({ status: 'ok', reason: '' }),
  files: FilesStatus.optional(),
  /** What only the node that booted knows: so nobody else can speak for it. */
  beat: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
})
export type Heartbeat = z.infer<typeof Heartbeat>

/** What the discovery system found. */
export const MachineFacts = z.object({
  boot: BootId.optional(),
  mac: Mac,
  /** Of InfiniBand they have twenty bytes. */
  macs: several(
    z.object({ name: line(32), mac: line(64), link: z.boolean().default(false), speed: z.number().optional() }),
    64,
  ),
  lldp: several(
    z.object({
      interface: line(32),
      frame: z
        .string()
        .max(4000)
        .regex(/^([0-9a-f]{2})*$/i),
    }),
    64,
  ),
  uuid: line(64).default(''),
  serial: line(128).default(''),
  vendor: line(128).default(''),
  product: line(128).default(''),
  cpu: z
    .object({ model: line(128).default(''), count: z.int().min(0).max(65_536).default(0) })
    .default({ model: '', count: 0 }),
  memory: z.number().min(0).default(0),
  disks: several(z.object({ name: line(32), size: z.number().min(0).default(0), model: line(128).default('') }), 256),
  bmc: z.object({ address: line(64).default(''), mac: line(32).default('') }).nullish(),
})
export type MachineFacts = z.infer<typeof MachineFacts>

/** Who asked to be let in. */
const asker = {
  at: z.iso.datetime(),
  server: z.string().max(64),
  mac: Mac,
  node: z.string().max(63),
  boot: BootId,
  address: z.string().max(64),
}

/**
 * What a boot server saw or was told, as it goes to the control role. `node` is who the machine was when it was seen.
 */
export const Sighting = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('phase'),
    at: z.iso.datetime(),
    server: z.string().max(64),
    mac: Mac,
    node: z.string().max(63).optional(),
    boot: BootId.optional(),
    phase: z.enum([...Phase.options, 'failed']),
    detail: z.string().max(500).optional(),
    image: Digest.optional(),
  }),
  z.strictObject({
    kind: z.literal('status'),
    at: z.iso.datetime(),
    server: z.string().max(64),
    mac: Mac,
    node: z.string().max(63),
    boot: BootId,
    image: Digest.optional(),
    kernel: z.string().max(100),
    hostname: z.string().max(253),
    addresses: z.array(z.string().max(64)).max(32),
    health: Health,
    files: FilesStatus.optional(),
  }),
  /** What a switch added to the DHCP request of a machine that boots: option 82, its parts in hex. */
  z.strictObject({
    kind: z.literal('relayed'),
    at: z.iso.datetime(),
    server: z.string().max(64),
    mac: Mac,
    circuit: OptionBytes.optional(),
    remote: OptionBytes.optional(),
    relay: z.ipv4().optional(),
  }),
  /** A node was let in, or was not: see boot/enrolment.ts. */
  z.strictObject({ kind: z.literal('enrolled'), ...asker }),
  z.strictObject({ kind: z.literal('enrol-refused'), ...asker, reason: z.string().max(200) }),
  z.strictObject({ kind: z.literal('machine'), at: z.iso.datetime(), server: z.string().max(64), facts: MachineFacts }),
])
export type Sighting = z.infer<typeof Sighting>

/** What boot servers hand to the control role every moment. */
export const SightingBatch = z.strictObject({
  sightings: z.array(Sighting).max(10_000),
  /** Nodes that sent a heartbeat since the last batch, as a folded node set. */
  heard: z.string().max(1_000_000),
})
export type SightingBatch = z.infer<typeof SightingBatch>
