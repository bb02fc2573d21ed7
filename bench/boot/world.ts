import { createHash } from 'node:crypto'
import type { BootView } from '../../src/boot/view.ts'
import type { SimulatedNode } from '../../src/lab/simulated/node.ts'

/** The node of that number, from 1. */
export function benchNode(number: number): SimulatedNode {
  const bytes = [16, 8, 0].map(shift => ((number >> shift) & 255).toString(16).padStart(2, '0'))
  return { name: `n${String(number).padStart(5, '0')}`, mac: `52:54:00:${bytes.join(':')}` }
}

export const benchNodes = (count: number): SimulatedNode[] =>
  Array.from({ length: count }, (_, index) => benchNode(index + 1))

const blob = (content: string) => ({
  sha256: createHash('sha256').update(content).digest('hex'),
  size: Buffer.byteLength(content),
})

/** Artefacts as simulated nodes need them: tiny, so that what is measured is everything else. */
export const TINY = ['kernel', 'initrd', 'squashfs'].map(name => `simulated ${name}\n`)

/** What a boot server is told of so many nodes that all boot one image. */
export function benchView(count: number): BootView {
  const [kernel, initrd, squashfs] = TINY.map(blob)
  return {
    version: `bench-${count}`,
    settings: {
      site: 'bench',
      networks: { prov: { cidr: '10.0.0.0/12', gateway: '10.0.0.1' } },
      provision: { port: 7180, tlsPort: 7181, dhcp: 'none', unknown: 'ignore', dns: [], shell: false, loaders: {} },
      discovery: null,
      trust: { keys: {} },
      channels: {},
    },
    nodes: benchNodes(count).map(({ name, mac }, index) => ({
      name,
      domain: 'bench.cluster',
      interfaces: [
        { name: 'prov', network: 'prov', mac, address: `10.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}` },
        { name: 'bmc', network: 'bmc', address: `10.${17 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}` },
      ],
      from: 'network',
      image: 'compute@stable',
      root: 'ram',
      form: 'squashfs',
      overlay: '50%',
      args: ['quiet', 'console=ttyS0,115200', `rack=${index % 40}`],
    })),
    images: {
      'compute@stable': {
        name: 'compute',
        digest: `sha256:${blob('compute').sha256}`,
        arch: 'amd64',
        kernelVersion: '6.1.0-40-amd64',
        ...(kernel && { kernel }),
        ...(initrd && { initrd }),
        ...(squashfs && { squashfs }),
      },
    },
    places: {},
  }
}
