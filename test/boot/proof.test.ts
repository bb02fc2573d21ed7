/** What a machine does with an image that is not what it should be: one wrong byte in any part of it, or no good signature. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildInitramfs } from '../../src/boot/initramfs/build.ts'
import { findBusybox } from '../../src/boot/initramfs/busybox.ts'
import { SCRIPTS } from '../../src/boot/initramfs/scripts.ts'
import { mergeLayers } from '../../src/images/layers/merge.ts'
import { scanLayer } from '../../src/images/layers/scan.ts'
import { manifestText } from '../../src/images/manifest.ts'
import { keyId, newPrivateKey, parsePrivateKey, publicText, signBytes } from '../../src/images/trust/keys.ts'
import { signifySignature } from '../../src/images/trust/signify.ts'
import { treeOf } from '../../src/lib/pack/testing.ts'
import { writeSquashfs } from '../../src/lib/squashfs/write.ts'
import { type Machine, MAC, MINUTES, boot, home, stockKernel, stopAll, tinyRoot } from './machine.ts'

const hex = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
const flipped = (bytes: Buffer, at: number): Buffer => {
  const other = Buffer.from(bytes)
  other[at] = (other[at] ?? 0) ^ 1
  return other
}

const [key, stranger] = [newPrivateKey(), newPrivateKey()].map(pem => parsePrivateKey(pem, 'a test')) as [
  ReturnType<typeof parsePrivateKey>,
  ReturnType<typeof parsePrivateKey>,
]

let dir: string
let kernel: { readonly version: string; readonly file: string }
let initrd: string
/** What the loader gave the machine. */
let loaded: { readonly kernel: Buffer; readonly initrd: Buffer }
let root: Buffer
let manifest: Buffer

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-proof-'))
  kernel = await stockKernel(dir)
  const layer = join(dir, 'kernel')
  const tree = mergeLayers([{ ...(await scanLayer(layer, 0)), root: layer }])
  const busybox = await findBusybox('amd64')
  initrd = join(dir, 'initrd')
  const about = { tree, kernel: kernel.version, arch: 'amd64', extraModules: [] } as const
  const archive = await buildInitramfs({ ...about, keys: [publicText(key)], busybox, scripts: SCRIPTS })
  await writeFile(initrd, archive)
  loaded = { kernel: await readFile(kernel.file), initrd: archive }
  await writeSquashfs(treeOf(await tinyRoot(busybox), join(dir, 'contents')), join(dir, 'root'), { time: 0 })
  root = await readFile(join(dir, 'root'))
  manifest = manifestOf(root)
}, 10 * MINUTES)
afterAll(async () => {
  await stopAll()
  await rm(dir, { recursive: true })
})

const manifestOf = (bytes: Buffer): Buffer =>
  Buffer.from(
    manifestText({
      schema: 'muster.image/1',
      name: 'tiny',
      arch: 'amd64',
      created: '2026-11-16T00:00:00Z',
      inputs: `sha256:${hex('inputs')}`,
      tree: `sha256:${hex('tree')}`,
      size: 1,
      artefacts: [
        { type: 'kernel', sha256: hex(loaded.kernel), size: loaded.kernel.length },
        { type: 'initrd', sha256: hex(loaded.initrd), size: loaded.initrd.length },
        { type: 'squashfs', sha256: hex(bytes), size: bytes.length },
      ],
    }),
  )

interface Told {
  readonly manifest?: Buffer
  readonly signer?: typeof key | 'nobody'
  /** What the server has under the digests of these. */
  readonly sent?: Partial<Record<'manifest' | 'kernel' | 'initrd' | 'root', Buffer>>
}

/** A machine that is told to run the image, and where what it is sent may differ from that. */
async function start(told: Told): Promise<Machine> {
  const { manifest: said = manifest, signer = key, sent = {} } = told
  const blobs = new Map([
    [hex(said), sent.manifest ?? said],
    [hex(loaded.kernel), sent.kernel ?? loaded.kernel],
    [hex(loaded.initrd), sent.initrd ?? loaded.initrd],
    [hex(root), sent.root ?? root],
  ])
  const server = await home(blobs, 'right')
  const signature =
    signer === 'nobody'
      ? ''
      : `muster.signature=${signifySignature({ key: keyId(publicText(signer)), signature: signBytes(said, signer) })}`
  const machine = await boot(
    kernel.file,
    initrd,
    [
      `muster.node=n001 muster.boot=0123456789abcdef muster.mac=${MAC} muster.servers=${server.url}`,
      `muster.image=sha256:${hex(said)} muster.manifest=${said.length} ${signature}`,
      `muster.root=squashfs muster.sha256=${hex(root)} muster.size=${root.length} muster.kernel=${kernel.version}`,
    ].join(' '),
  )
  return {
    ...machine,
    async [Symbol.asyncDispose]() {
      await machine[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

const hasStarted = ({ console }: Machine): boolean => console.some(line => line.startsWith('root: '))

describe('a machine with keys of its site', () => {
  it('runs an image that one of them has signed', async () => {
    await using machine = await start({})
    await machine.line(/^root: end$/)
    expect(machine.console.join('\n')).toContain(`verify: the key ${keyId(publicText(key))} has signed the image`)
  })

  it.for([
    ['that nobody has signed', () => ({ signer: 'nobody' }), /FAILED: the image sha256:\S+ is not signed; sign it/],
    [
      'that somebody else has signed',
      () => ({ signer: stranger }),
      /FAILED: none of the keys that this machine trusts has signed the image/,
    ],
    [
      'with another manifest than was signed',
      () => ({ sent: { manifest: flipped(manifest, 100) } }),
      /FAILED: http:\S+ sent other bytes than those of the image/,
    ],
    [
      'with another root than the manifest names',
      () => ({ manifest: manifestOf(Buffer.from('other')) }),
      /FAILED: the manifest that [0-9a-f]{16} has signed names another root than sha256:/,
    ],
    [
      'with one wrong byte in its kernel',
      () => ({ sent: { kernel: flipped(loaded.kernel, loaded.kernel.length >> 1) } }),
      /FAILED: the kernel that http:\S+ gives out is not the one of the image: sha256 [0-9a-f]{64} instead of/,
    ],
    [
      'with one wrong byte in its initramfs',
      () => ({ sent: { initrd: flipped(loaded.initrd, 1_000_000) } }),
      /FAILED: the initramfs that http:\S+ gives out is not the one of the image/,
    ],
    [
      'with one wrong byte in its root',
      () => ({ sent: { root: flipped(root, 4_000_000) } }),
      /FAILED: http:\S+ sent other bytes than those of the image/,
    ],
  ] as readonly (readonly [string, () => Told, RegExp])[])(
    'does not run one %s, and says why',
    async ([, told, message]) => {
      await using machine = await start(told())
      await machine.line(message)
      expect(hasStarted(machine)).toBe(false)
    },
  )
})
