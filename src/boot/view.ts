import { z } from 'zod'
import { type Manifest, artefactOf, manifestText } from '../images/manifest.ts'
import { placeOf } from '../nodes/places.ts'
import { Swap } from '../nodes/swaps.ts'
import { SiteSettings } from '../site/settings.ts'

/**
 * All that serving nodes needs to know, as one document: what the control role compiles, boot servers keep a copy of, and
 * every answer to a node is worked out from. No secrets are in it.
 */
const Blob = z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.int().min(0) })

export const BootImage = z.strictObject({
  name: z.string(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  arch: z.enum(['amd64', 'arm64']),
  /** When and by whom the channel was moved to it. */
  promoted: z.strictObject({ at: z.string(), by: z.string() }).optional(),
  /** Where it has not passed its tests. */
  untested: z.array(z.enum(['root', 'container', 'vm'])).optional(),
  /** Why its signature, or the lack of one, keeps it from nodes. */
  untrusted: z.string().optional(),
  /** By a key of the site, as nodes check it. */
  signature: z
    .string()
    .regex(/^[A-Za-z0-9+/]{99}=$/)
    .optional(),
  /** The manifest itself is fetched by nodes that check its signature. */
  manifest: Blob.optional(),
  kernelVersion: z.string().optional(),
  kernel: Blob.optional(),
  initrd: Blob.optional(),
  squashfs: Blob.optional(),
  cpio: Blob.optional(),
})
export type BootImage = z.infer<typeof BootImage>

export const BootInterface = z.strictObject({
  name: z.string(),
  network: z.string(),
  address: z.string().optional(),
  mac: z.string().optional(),
  vlan: z.int().optional(),
})
export type BootInterface = z.infer<typeof BootInterface>

export const BootNode = z.strictObject({
  name: z.string(),
  domain: z.string().optional(),
  interfaces: z.array(BootInterface),
  /** Switch and port, as one word. */
  place: z.string().optional(),
  from: z.enum(['network', 'disk']),
  image: z.string().optional(),
  root: z.enum(['ram', 'projected', 'disk']),
  form: z.enum(['squashfs', 'cpio']),
  overlay: z.string(),
  args: z.array(z.string()),
})
export type BootNode = z.infer<typeof BootNode>

/** A machine that would be a node, but for another one that is. */
export const Waiting = z.strictObject({
  node: z.string(),
  /** MAC of the one that is. */
  holder: z.string(),
  place: z.string().optional(),
})
export type Waiting = z.infer<typeof Waiting>

export const BootView = z.strictObject({
  /** Changes with the content: whoever has it has the same. */
  version: z.string(),
  settings: SiteSettings,
  nodes: z.array(BootNode),
  /** What a reference such as compute@stable means today. */
  images: z.record(z.string(), BootImage),
  /** Where machines were seen to be plugged in: MAC → place. */
  places: z.record(z.string(), z.string()),
  /** Machines that have to wait, by MAC. */
  waiting: z.record(z.string(), Waiting).optional(),
  /** Nodes that have changed machines. */
  swaps: z.array(Swap).optional(),
})
export type BootView = z.infer<typeof BootView>

/** A node as desired state has it. */
export function bootNode(name: string, value: Readonly<Record<string, unknown>>): BootNode {
  const desired = value as Desired
  const boot = desired.boot ?? {}
  const { switch: from, port } = desired.location ?? {}
  return {
    name,
    ...(desired.domain !== undefined && { domain: desired.domain }),
    interfaces: Object.entries(desired.interfaces ?? {}).map(([interfaceName, one]) => ({
      name: interfaceName,
      network: one.network ?? interfaceName,
      ...(one.address !== undefined && { address: one.address }),
      ...(one.mac !== undefined && { mac: one.mac }),
      ...(one.vlan !== undefined && { vlan: one.vlan }),
    })),
    ...(from !== undefined && port !== undefined && { place: placeOf({ switch: from, port }) }),
    from: boot.from ?? 'network',
    ...(boot.image !== undefined && { image: boot.image }),
    root: boot.root ?? 'ram',
    form: boot.form ?? 'squashfs',
    overlay: boot.overlay ?? '50%',
    args: boot.args ?? [],
  }
}

interface Desired {
  readonly domain?: string
  readonly boot?: Partial<Pick<BootNode, 'from' | 'image' | 'root' | 'form' | 'overlay'>> & { args?: string[] }
  readonly interfaces?: Readonly<Record<string, Partial<Omit<BootInterface, 'name'>>>>
  readonly location?: { readonly switch?: string; readonly port?: string }
}

export function bootImage(digest: string, manifest: Manifest): BootImage {
  const blob = (type: Parameters<typeof artefactOf>[1]): z.infer<typeof Blob> | undefined => {
    const found = artefactOf(manifest, type)
    return found && { sha256: found.sha256, size: found.size }
  }
  return {
    name: manifest.name,
    digest,
    arch: manifest.arch,
    manifest: { sha256: digest.slice('sha256:'.length), size: Buffer.byteLength(manifestText(manifest)) },
    kernelVersion: manifest.kernel?.version,
    kernel: blob('kernel'),
    initrd: blob('initrd'),
    squashfs: blob('squashfs'),
    cpio: blob('cpio.zst') ?? blob('cpio.gz'),
  }
}
