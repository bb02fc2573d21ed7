/** What tests of images start from: a store in a directory that goes with the test, and images of a few bytes. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Artefact, ArtefactType, Digest, Manifest } from '../manifest.ts'
import type { Roots } from './collect.ts'
import { hashFile } from './disk.ts'
import { type ImageStore, openImageStore } from './store.ts'
import type { Finding, VerifyOptions } from './verify.ts'

export interface TestStore extends AsyncDisposable {
  readonly dir: string
  readonly store: ImageStore
}

export async function makeStore(now?: () => Date): Promise<TestStore> {
  const top = await mkdtemp(join(tmpdir(), 'muster-images-'))
  const dir = join(top, 'images')
  return {
    dir,
    store: await openImageStore(dir, now),
    [Symbol.asyncDispose]: () => rm(top, { recursive: true, force: true }),
  }
}

export const NO_ROOTS: Roots = { uses: new Map() }

export const makeManifest = (name: string, artefacts: Artefact[], more: Partial<Manifest> = {}): Manifest => ({
  schema: 'muster.image/1',
  name,
  arch: 'amd64',
  created: '2026-03-01T12:00:00Z',
  inputs: `sha256:${'1'.repeat(64)}`,
  tree: `sha256:${'2'.repeat(64)}`,
  os: { id: 'debian', version: '12', name: 'Debian GNU/Linux 12 (bookworm)' },
  kernel: { version: '6.1.0-30-amd64', modules: [] },
  size: 123_456,
  artefacts,
  ...more,
})

/** Stores the contents and publishes an image of them. */
export async function publishImage(
  store: ImageStore,
  name: string,
  contents: Partial<Record<ArtefactType, string | Uint8Array>>,
): Promise<{ digest: Digest; manifest: Manifest }> {
  const artefacts: Artefact[] = []
  for (const [type, content] of Object.entries(contents))
    artefacts.push({ type: type as ArtefactType, ...(await store.put(content)) })
  const manifest = makeManifest(name, artefacts)
  return { digest: await store.publish(manifest), manifest }
}

/** Digests of all blobs that are visible, after a check that each that is new is what its name says. */
export async function wholeBlobs(dir: string, known = new Set<string>()): Promise<string[]> {
  const top = join(dir, 'blobs/sha256')
  const digests: string[] = []
  for (const folder of await readdir(top)) {
    for (const name of await readdir(join(top, folder))) {
      digests.push(name)
      if (known.has(name)) continue
      const { sha256 } = await hashFile(join(top, folder, name))
      if (sha256 !== name || !name.startsWith(folder)) throw new Error(`${folder}/${name} is ${sha256}`)
      known.add(name)
    }
  }
  return digests.sort()
}

export async function findings(store: ImageStore, reference?: string, options?: VerifyOptions): Promise<Finding[]> {
  const found: Finding[] = []
  for await (const finding of store.verify(reference, options)) found.push(finding)
  return found
}

export const problems = async (store: ImageStore): Promise<Finding[]> =>
  (await findings(store)).filter(finding => finding.problem !== undefined)
