import { z } from 'zod'
import { MusterError } from '../lib/errors.ts'
import { isAddress, parseNetwork } from '../lib/ip.ts'
import type { Accelerator, Firmware } from './qemu.ts'

/** Resolves when the server is ready; the signal says that nobody waits for that any more. */
export type IsReady = (url: string, signal: AbortSignal) => Promise<void>

/** What is asked of a lab. */
export interface LabOptions {
  readonly nodes: readonly {
    readonly name: string
    readonly mac: string
    readonly memory?: number
    readonly cpus?: number
  }[]
  readonly firmware: Firmware
  /**
   * Of the server's end of the network: `[{ cidr: '10.77.0.1/16' }]`. Without any, and without nodes, there is no network:
   * the server runs where we do, and nothing of it needs root.
   */
  readonly addresses: readonly { readonly cidr: string }[]
  readonly server: {
    readonly command: string
    /** It listens on descriptor 3 for whoever is on the host. */
    readonly args: readonly string[]
    readonly env?: Readonly<Record<string, string>>
    readonly log: string
    readonly port?: number
    /** Resolves when machines may be switched on. */
    readonly ready?: IsReady
  }
  /** What the machines boot: shows whether KVM works. */
  readonly kernel?: string
  /** No question of what works. */
  readonly accelerator?: Accelerator
  /** The machines are there, but off. */
  readonly off?: boolean
  readonly signal?: AbortSignal
}

const LabNode = z.strictObject({
  name: z.string().regex(/^\w[\w.-]{0,62}$/, 'is not a node name'),
  mac: z
    .string()
    .toLowerCase()
    .regex(/^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/, 'is not the MAC address of a machine'),
  /** MiB. */
  memory: z.int().min(128).max(1_048_576).default(1536),
  cpus: z.int().min(1).max(255).default(1),
})

const LabServer = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()),
  env: z.record(z.string(), z.string()).default({}),
  /** Gets all it prints, at its end. */
  log: z.string().startsWith('/'),
  /** On 127.0.0.1 of the host; 0 for any that is free. */
  port: z.int().min(0).max(65_535).default(0),
})

const Address = z.strictObject({
  cidr: z.string().refine(text => parseNetwork(text) !== undefined && isAddress(text.split('/')[0] ?? ''), {
    message: 'is not an address with its network such as 10.77.0.1/16',
  }),
})

/** The part of it that is written down. */
export const LabPlan = z
  .strictObject({
    nodes: z.array(LabNode).max(512),
    firmware: z.enum(['bios', 'uefi']),
    addresses: z.array(Address),
    server: LabServer,
  })
  .superRefine(({ nodes }, context) => {
    for (const key of ['name', 'mac'] as const) {
      const values = nodes.map(node => node[key])
      const twice = values.find((value, index) => values.indexOf(value) !== index)
      if (twice !== undefined) context.addIssue({ code: 'custom', message: `two nodes have the ${key} ${twice}` })
    }
  })
export type LabPlan = z.infer<typeof LabPlan>

/** Strictly what a lab can be. */
export function planOf({ nodes, firmware, addresses, server }: LabOptions): LabPlan {
  const { ready: _, ...program } = server
  const { data, error } = LabPlan.safeParse({ nodes, firmware, addresses, server: program })
  if (data !== undefined) return data
  throw new MusterError('USAGE', `this cannot be a lab: ${z.prettifyError(error)}`)
}

/** Whether it has a network at all. */
export const isWired = ({ nodes, addresses }: LabPlan): boolean => nodes.length + addresses.length > 0
