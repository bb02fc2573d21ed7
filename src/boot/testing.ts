/** A small view for tests: one network with boot servers, one image with everything, three nodes. */
import { createHash } from 'node:crypto'
import { Provision } from '../site/schema.ts'
import { ViewIndex } from './index-view.ts'
import { type BootImage, type BootInterface, BootNode, BootView } from './view.ts'

/** The same digit all over: digests one can tell apart in an expected text. */
export const hex = (digit: string): string => digit.repeat(64)
export const sha256Of = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

export const COMPUTE: BootImage = {
  name: 'compute',
  digest: `sha256:${hex('a')}`,
  arch: 'amd64',
  kernelVersion: '6.1.0-30-amd64',
  kernel: { sha256: hex('1'), size: 8_000_000 },
  initrd: { sha256: hex('2'), size: 5_000_000 },
  squashfs: { sha256: hex('3'), size: 300_000_000 },
  cpio: { sha256: hex('4'), size: 400_000_000 },
}

export const MAC = '52:54:00:00:00:01'
export const STRANGER = '52:54:00:ff:ff:ff'

export const boots = (name: string, more: Partial<BootNode> = {}): BootNode =>
  BootNode.parse({
    name,
    domain: 'demo.cluster',
    interfaces: [],
    from: 'network',
    image: 'compute',
    root: 'ram',
    form: 'squashfs',
    overlay: '50%',
    args: [],
    ...more,
  })

export const prov = (address: string, more: Partial<BootInterface> = {}): BootInterface => ({
  name: 'prov',
  network: 'prov',
  address,
  ...more,
})

interface Wanted {
  readonly nodes?: readonly BootNode[]
  readonly images?: Readonly<Record<string, BootImage>>
  readonly places?: Readonly<Record<string, string>>
  readonly waiting?: BootView['waiting']
  readonly swaps?: BootView['swaps']
  readonly switches?: BootView['settings']['switches']
  readonly networks?: BootView['settings']['networks']
  readonly provision?: Partial<BootView['settings']['provision']>
  readonly discovery?: string | null
}

export const viewOf = (wanted: Wanted = {}): BootView =>
  BootView.parse({
    version: 'v1',
    settings: {
      site: 'demo',
      networks: wanted.networks ?? {
        prov: { cidr: '10.77.0.0/16', gateway: '10.77.0.1', unknown: '10.77.255.0/24' },
      },
      switches: wanted.switches,
      provision: Provision.parse({ servers: ['10.77.0.1', '10.77.0.2'], ...wanted.provision }),
      discovery: wanted.discovery === undefined ? 'compute' : wanted.discovery,
    },
    nodes: wanted.nodes ?? [
      boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })] }),
      boots('n2', { interfaces: [prov('10.77.1.2')], place: 'sw1 2' }),
      boots('n3', { interfaces: [prov('10.77.1.3')] }),
    ],
    images: wanted.images ?? { compute: COMPUTE },
    places: wanted.places ?? {},
    waiting: wanted.waiting,
    swaps: wanted.swaps,
  })

export const indexOf = (wanted: Wanted = {}): ViewIndex => new ViewIndex(viewOf(wanted))

/** A port that only root may have, another one each time. */
export const rootsPort = (): number => 512 + ((roots.count += 1) % 512)
const roots = { count: process.pid }
