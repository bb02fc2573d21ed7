import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type Logger, pino } from 'pino'
import { Artefacts, type Blobs } from '../../boot/artefacts.ts'
import { type Decision, decideFor } from '../../boot/decide.ts'
import { createBootHttp } from '../../boot/http.ts'
import { ViewIndex } from '../../boot/index-view.ts'
import { kernelArguments } from '../../boot/ipxe.ts'
import { type BootImage, bootImage, bootNode } from '../../boot/view.ts'
import type { ImageStore, ResolvedImage } from '../../images/store/store.ts'
import { MusterError } from '../../lib/errors.ts'
import type { Sighting } from '../../nodes/reports.ts'
import { Provision } from '../../site/schema.ts'
import { NETWORK, SERVER } from './arguments.ts'
import { trialTrust } from './trust.ts'

type PhaseSighting = Extract<Sighting, { kind: 'phase' }>
type ImageDecision = Extract<Decision, { kind: 'image' }>

export const NODE = 'muster-test'
export const MAC = '52:54:00:74:72:79'

/** A boot server for one node, which boots one image, once. */
export interface TrialServer extends AsyncDisposable {
  /** Of this machine's loopback. */
  readonly port: number
  /** Tells this boot from all others. */
  readonly boot: string
  /** What a boot server decides for a node with this image. */
  readonly decision: ImageDecision
  /** What it tells the kernel of that node. */
  readonly args: readonly string[]
  /** An initramfs to go behind that of the image: what it holds makes the image one that may run. */
  readonly trust: Buffer
}

/** The HTTP of a real boot server, over a site that is not written anywhere. */
export async function openTrialServer(
  { digest, manifest }: ResolvedImage,
  store: ImageStore,
  onPhase: (sighting: PhaseSighting) => void,
): Promise<TrialServer> {
  const boot = randomBytes(8).toString('hex')
  const trust = trialTrust(manifest)
  const image: BootImage = { ...bootImage(digest, manifest), signature: trust.signature }
  const form = image.squashfs === undefined ? 'cpio' : 'squashfs'
  const node = bootNode(NODE, { boot: { image: image.name, form }, interfaces: { prov: { mac: MAC } } })
  const index = new ViewIndex({
    version: boot,
    settings: {
      site: 'test',
      networks: { prov: { cidr: NETWORK } },
      provision: Provision.parse({ unknown: 'ignore' }),
      discovery: null,
      trust: { keys: {} },
      channels: {},
    },
    nodes: [node],
    images: { [image.name]: image },
    places: {},
  })
  const decision = decideFor(index, MAC)
  if (decision.kind !== 'image') throw cannotBoot(decision)
  const urls = [`http://${SERVER.address}:${SERVER.port}`] as const
  const logger: Logger = pino({ enabled: false })
  const server = createBootHttp({
    logger,
    // Asked for once: there is nothing to be gained by keeping it.
    artefacts: new Artefacts(only(image, store), { logger, budget: 0 }),
    index: () => index,
    servers: () => urls,
    tell: sighting => {
      if (sighting.kind === 'phase' && sighting.boot === boot) onPhase(sighting)
    },
    heard: () => {},
    loader: () => Promise.resolve(undefined),
    discoveryExtras: () => undefined,
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    boot,
    decision,
    trust: trust.archive,
    args: kernelArguments(decision, { urls, boot, mac: MAC, shell: false }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Whoever else is on this machine may ask as well. */
const only = ({ manifest, kernel, initrd, squashfs }: BootImage, store: Blobs): Blobs => {
  const wanted = new Set([manifest, kernel, initrd, squashfs].map(blob => blob?.sha256))
  return { pathOf: sha256 => (wanted.has(sha256) ? store.pathOf(sha256) : NOWHERE) }
}
const NOWHERE = ''

function cannotBoot(decision: Exclude<Decision, ImageDecision>): MusterError {
  const [problem, hint] =
    decision.kind === 'refuse' ? [decision.problem, decision.hint] : ['it boots from elsewhere', '']
  return new MusterError('IMAGE_INCOMPLETE', `no machine can boot it: ${problem}`, { hint })
}
