import { describe, expect, it } from 'vitest'
import { type ArtefactType, manifestText } from '../images/manifest.ts'
import { makeManifest } from '../images/store/testing.ts'
import { siteOf, valueOf } from '../site/testing.ts'
import { hex } from './testing.ts'
import { placeOf } from '../nodes/places.ts'
import { BootImage, BootNode, bootImage, bootNode } from './view.ts'

describe('a node of the view', () => {
  it.for<[what: string, value: Record<string, unknown>, node: Partial<BootNode>]>([
    ['of which nothing is said', {}, {}],
    ['with a domain', { domain: 'demo.cluster' }, { domain: 'demo.cluster' }],
    [
      'that says everything of its boot',
      { boot: { from: 'disk', image: 'x@stable', root: 'disk', form: 'cpio', overlay: '1048576', args: ['quiet'] } },
      { from: 'disk', image: 'x@stable', root: 'disk', form: 'cpio', overlay: '1048576', args: ['quiet'] },
    ],
    [
      'with interfaces: each is in the network of its name, unless it says another',
      { interfaces: { prov: { address: '10.77.1.1', mac: '52:54:00:00:00:01', vlan: 12 }, ib0: { network: 'ib' } } },
      {
        interfaces: [
          { name: 'prov', network: 'prov', address: '10.77.1.1', mac: '52:54:00:00:00:01', vlan: 12 },
          { name: 'ib0', network: 'ib' },
        ],
      },
    ],
    ['at a place', { location: { switch: 'sw1', port: '17', rack: 'r1' } }, { place: 'sw1 17' }],
    ['at half a place', { location: { switch: 'sw1' } }, {}],
  ])('%s', ([, value, more]) => {
    const node = bootNode('n1', value)
    expect(node).toEqual({
      name: 'n1',
      interfaces: [],
      from: 'network',
      root: 'ram',
      form: 'squashfs',
      overlay: '50%',
      args: [],
      ...more,
    })
    expect(BootNode.parse(node)).toEqual(node)
  })

  it('is what a site says of it', async () => {
    const site = await siteOf({
      'nodes.yaml': `n[1-3]:
  domain: demo.cluster
  boot: { form: cpio, overlay: 2 GB, args: ["console=ttyS{{ 0 }}"] }
  location: { switch: sw1, port: "{{ index }}" }
  interfaces:
    prov: { address: "10.77.1.{{ index }}", mac: "52:54:00:00:00:0{{ index }}" }
`,
    })
    expect(bootNode('n2', valueOf(site, 'n2'))).toEqual({
      name: 'n2',
      domain: 'demo.cluster',
      interfaces: [{ name: 'prov', network: 'prov', address: '10.77.1.2', mac: '52:54:00:00:00:02' }],
      place: 'sw1 2',
      from: 'network',
      image: 'base',
      root: 'ram',
      form: 'cpio',
      overlay: '2000000000',
      args: ['console=ttyS0'],
    })
  })
})

it('a place is one word of switch and port', () => {
  expect(placeOf({ switch: 'leaf-03', port: 'Ethernet1/17' })).toBe('leaf-03 Ethernet1/17')
})

const artefacts = (...types: ArtefactType[]) =>
  types.map((type, index) => ({ type, sha256: hex(String(index + 1)), size: index + 1 }))

describe('an image of the view', () => {
  const digest = `sha256:${hex('a')}`

  it('is what nodes fetch of it', () => {
    const image = bootImage(
      digest,
      makeManifest('compute', artefacts('kernel', 'initrd', 'squashfs', 'cpio.zst', 'log')),
    )
    expect(image).toEqual({
      name: 'compute',
      digest,
      arch: 'amd64',
      manifest: { sha256: digest.slice(7), size: expect.any(Number) as number },
      kernelVersion: '6.1.0-30-amd64',
      kernel: { sha256: hex('1'), size: 1 },
      initrd: { sha256: hex('2'), size: 2 },
      squashfs: { sha256: hex('3'), size: 3 },
      cpio: { sha256: hex('4'), size: 4 },
    })
    // As it arrives at another server.
    expect(BootImage.parse(JSON.parse(JSON.stringify(image)))).toEqual(image)
  })

  it('has the cpio that is packed best', () => {
    expect(bootImage(digest, makeManifest('x', artefacts('cpio.gz', 'cpio.zst'))).cpio?.sha256).toBe(hex('2'))
    expect(bootImage(digest, makeManifest('x', artefacts('cpio.gz'))).cpio?.sha256).toBe(hex('1'))
  })

  it('may lack everything', () => {
    const { kernel: _, ...manifest } = makeManifest('bare', [])
    const image = bootImage(digest, manifest)
    expect(JSON.parse(JSON.stringify(image))).toEqual({
      name: 'bare',
      digest,
      arch: 'amd64',
      manifest: { sha256: digest.slice(7), size: Buffer.byteLength(manifestText(manifest)) },
    })
    expect(BootImage.parse(image)).toBeDefined()
  })
})
