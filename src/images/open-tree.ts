import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../lib/errors.ts'
import type { FileTree } from '../lib/tree/entry.ts'
import { unpackSquashfs } from './build/bases/stored.ts'
import { openWorkDir } from './build/workdir.ts'
import { readFileList } from './file-list.ts'
import { type Manifest, artefactOf } from './manifest.ts'
import type { ImageStore } from './store/store.ts'

/** The root of an image, unpacked for a while. */
export interface OpenTree extends AsyncDisposable {
  readonly root: string
  readonly tree: FileTree
}

export async function openTree(store: ImageStore, manifest: Manifest, signal: AbortSignal): Promise<OpenTree> {
  const squashfs = artefactOf(manifest, 'squashfs')
  if (squashfs === undefined)
    throw new MusterError('IMAGE_INCOMPLETE', `image ${manifest.name} has no squashfs to unpack`, {
      hint: 'add squashfs to the outputs of its recipe and build it again',
    })
  const entries = await readFileList(store, manifest)
  const work = await openWorkDir(join(store.dir, 'work'))
  const root = join(work.path, 'root')
  try {
    await mkdir(root)
    await unpackSquashfs(store.pathOf(squashfs.sha256), root, { signal }, `image ${manifest.name}`)
  } catch (error) {
    await work[Symbol.asyncDispose]()
    throw error
  }
  return {
    root,
    tree: { entries, locate: file => join(root, file.path) },
    [Symbol.asyncDispose]: () => work[Symbol.asyncDispose](),
  }
}
