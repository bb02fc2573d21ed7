import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ArtefactType, Manifest } from '../../images/manifest.ts'
import type { ImageStore } from '../../images/store/store.ts'

const PARTS: readonly ArtefactType[] = ['kernel', 'initrd', 'squashfs', 'cpio.zst']

/** An image that boots nothing: for simulated nodes where no real one can be built. */
export async function publishSimulatedImage(store: ImageStore, name: string): Promise<void> {
  const artefacts: Manifest['artefacts'] = []
  for (const type of PARTS) {
    const content = Buffer.from(`simulated ${type} of ${name}\n`)
    const sha256 = createHash('sha256').update(content).digest('hex')
    await store.receive(sha256, Readable.from([content]), content.length)
    artefacts.push({ type, sha256, size: content.length })
  }
  const nothing = `sha256:${createHash('sha256').update(`simulated ${name}`).digest('hex')}` as const
  await store.publish({
    schema: 'muster.image/1',
    name,
    arch: 'amd64',
    created: '1970-01-01T00:00:00.000Z',
    inputs: nothing,
    tree: nothing,
    os: { id: 'simulated', name: 'Simulated: boots nothing' },
    kernel: { version: 'simulated', modules: [] },
    size: 0,
    artefacts,
  })
}
