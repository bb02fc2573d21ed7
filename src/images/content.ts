import type { ImageContent } from './diff.ts'
import { readFileList } from './file-list.ts'
import { type Manifest, artefactOf } from './manifest.ts'
import { parsePackageList } from './packages/list.ts'
import type { InstalledPackage } from './packages/package.ts'
import type { ImageStore } from './store/store.ts'

const MAX_LIST = 2 ** 28

export async function packagesOf(store: ImageStore, manifest: Manifest): Promise<InstalledPackage[]> {
  const artefact = artefactOf(manifest, 'packages')
  return artefact === undefined ? [] : parsePackageList((await store.read(artefact.sha256, MAX_LIST)).toString('utf8'))
}

/** What an image holds, as its artefacts say; nothing is unpacked. */
export async function contentOf(store: ImageStore, manifest: Manifest): Promise<ImageContent> {
  return { packages: await packagesOf(store, manifest), entries: await readFileList(store, manifest) }
}
