import { describe, expect, it } from 'vitest'
import { type Decision, decideFor, decideNode } from './decide.ts'
import { COMPUTE, MAC, STRANGER, boots, hex, indexOf, prov } from './testing.ts'
import type { BootNode } from './view.ts'

const PINNED = `compute@sha256:${hex('a')}`
const without = (...parts: ('kernel' | 'initrd' | 'squashfs' | 'cpio')[]) => ({
  compute: { ...COMPUTE, ...Object.fromEntries(parts.map(part => [part, undefined])) },
})

/** What n1 is given. */
const given = (more: Partial<BootNode> = {}, wanted: Parameters<typeof indexOf>[0] = {}): Decision =>
  decideFor(
    indexOf({ nodes: [boots('n1', { interfaces: [prov('10.77.1.1', { mac: MAC })], ...more })], ...wanted }),
    MAC,
  )

const KNOWN = `${MAC} is interfaces.prov.mac of n1`

describe('a node is given', () => {
  it('its image as squashfs', () => {
    expect(given()).toMatchObject({
      kind: 'image',
      node: { name: 'n1' },
      image: COMPUTE,
      form: 'squashfs',
      machine: { interface: { name: 'prov' } },
      because: [
        KNOWN,
        `boot.image is compute: the newest is sha256:${hex('a')}`,
        'boot.form is squashfs: our initramfs fetches it and mounts it below an overlay of 50% of memory',
      ],
    })
  })

  it('its image as cpio', () => {
    expect(given({ form: 'cpio' })).toMatchObject({
      kind: 'image',
      form: 'cpio',
      because: [
        KNOWN,
        `boot.image is compute: the newest is sha256:${hex('a')}`,
        'boot.form is cpio: the whole image is the initramfs, there is no second stage',
      ],
    })
  })

  it.for([
    [
      'compute@stable',
      `boot.image is compute@stable; nothing was promoted to that channel yet, so it is the newest: sha256:${hex('a')}`,
    ],
    [PINNED, `boot.image is pinned to sha256:${hex('a')}`],
  ])('%s', ([image = '', because]) => {
    expect(given({ image }, { images: { [image]: COMPUTE } }).because[1]).toBe(because)
  })

  it('an overlay of so many bytes', () => {
    expect(given({ overlay: '2000000000' }).because[2]).toContain('an overlay of 2000000000 bytes')
  })

  it('its disk, whatever its image', () => {
    expect(given({ from: 'disk', image: 'nothing' })).toMatchObject({
      kind: 'disk',
      node: { name: 'n1' },
      because: [KNOWN, 'boot.from is disk'],
    })
  })
})

describe('a node is refused', () => {
  it.for<[what: string, decision: Decision, problem: string, hint: string]>([
    [
      'that nobody signed',
      given({}, { images: { compute: { ...COMPUTE, untrusted: 'nobody has signed it' } } }),
      'image compute is not to be trusted: nobody has signed it',
      'sign it with a key of trust.keys: muster image sign compute',
    ],
    [
      'that has not passed its tests',
      given({}, { images: { compute: { ...COMPUTE, untested: ['root', 'container'] } } }),
      'image compute has not passed its tests in root, container',
      'muster image test compute',
    ],
    [
      'without an image',
      given({ image: undefined }),
      'n1 has no image to boot',
      'give it one: muster node set n1 boot.image=NAME',
    ],
    [
      'with a root on disk',
      given({ root: 'disk' }),
      'n1 wants a root of the kind disk, which this version cannot serve yet',
      'muster node set n1 boot.root=ram',
    ],
    [
      'with a projected root',
      given({ root: 'projected' }),
      'n1 wants a root of the kind projected, which this version cannot serve yet',
      'muster node set n1 boot.root=ram',
    ],
    [
      'with an image that was not built',
      given({ image: 'login' }),
      'there is no image login on the server',
      'build it: muster image build login',
    ],
    [
      'with an image of a channel that was not built',
      given({ image: 'login@stable' }),
      'there is no image login@stable on the server',
      'build it: muster image build login',
    ],
    [
      'with a pinned image that is not here',
      given({ image: PINNED }),
      `there is no image ${PINNED} on the server`,
      `bring it: muster image pull ${PINNED}`,
    ],
    [
      'with an image without a kernel',
      given({}, { images: without('kernel') }),
      'image compute has no kernel',
      'build it again with that among its outputs: muster image build compute',
    ],
    [
      'with an image without a squashfs',
      given({}, { images: without('squashfs') }),
      'image compute has no squashfs',
      'build it again with that among its outputs: muster image build compute',
    ],
    [
      'with an image without an initramfs',
      given({}, { images: without('initrd') }),
      'image compute has no initramfs',
      'build it again with that among its outputs: muster image build compute',
    ],
    [
      'with an image without a cpio, if it wants that',
      given({ form: 'cpio' }, { images: without('cpio') }),
      'image compute has no cpio',
      'build it again with that among its outputs: muster image build compute',
    ],
  ])('%s', ([, decision, problem, hint]) => {
    expect(decision).toMatchObject({ kind: 'refuse', node: { name: 'n1' }, problem, hint })
    expect(decision.because[0]).toBe(KNOWN)
  })

  it('nothing for parts that its form does not need', () => {
    expect(given({}, { images: without('cpio') }).kind).toBe('image')
    expect(given({ form: 'cpio' }, { images: without('squashfs', 'initrd') }).kind).toBe('image')
  })
})

describe('a node that no machine is yet', () => {
  it('would be given the same', () => {
    const index = indexOf()
    const node = index.node('n3') as BootNode
    expect(decideNode(index, node)).toMatchObject({
      kind: 'image',
      machine: undefined,
      because: ['n3 is a node of the site', expect.any(String), expect.any(String)],
    })
  })
})

describe('a machine nobody knows', () => {
  const because = `no node has ${STRANGER}, and it was not seen at the place of one`

  it('is given the discovery system', () => {
    expect(decideFor(indexOf(), STRANGER)).toEqual({
      kind: 'discover',
      image: COMPUTE,
      because: [because, 'provision.unknown is discover: it runs the kernel of compute and says what it is'],
    })
  })

  it('is told what it waits for, where it would be a node but for another one', () => {
    const waiting = { [STRANGER]: { node: 'n2', holder: MAC, place: 'sw1 2' } }
    const waits = `${STRANGER} waits: it claims sw1 2, the place of n2, but n2 is ${MAC}`
    expect(decideFor(indexOf({ waiting }), STRANGER)).toMatchObject({
      kind: 'discover',
      waits,
      because: [waits, expect.anything()],
    })
    const swapped = { [STRANGER]: { node: 'n2', holder: MAC } }
    expect(decideFor(indexOf({ waiting: swapped }), STRANGER).because[0]).toBe(`${STRANGER} waits: n2 is ${MAC}`)
  })

  it('is refused where the site wants no strangers', () => {
    expect(decideFor(indexOf({ provision: { unknown: 'ignore' } }), STRANGER)).toEqual({
      kind: 'refuse',
      problem: `${STRANGER} is no node of site demo`,
      hint: `make it one: muster node set NODE interfaces.NETWORK.mac=${STRANGER}`,
      because: [because],
    })
  })

  it.for<[what: string, wanted: Parameters<typeof indexOf>[0], image: string, hint: string]>([
    ['there is none', { images: {} }, 'compute', 'build it: muster image build compute'],
    ['it has no kernel', { images: without('kernel') }, 'compute', 'build it: muster image build compute'],
    ['it has no initramfs', { images: without('initrd') }, 'compute', 'build it: muster image build compute'],
    ['the site names none', { discovery: null }, 'of defaults', 'name one in site.yaml: provision.discovery'],
  ])('is refused where %s', ([, wanted, image, hint]) => {
    expect(decideFor(indexOf(wanted), STRANGER)).toEqual({
      kind: 'refuse',
      problem: `${STRANGER} is no node of site demo, and there is no discovery system: image ${image} with a kernel is missing`,
      hint,
      because: [because],
    })
  })
})
