import { chmod, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { makeDirectory } from '../../lib/dirs.ts'
import type { Entry } from '../../lib/tree/entry.ts'
import type { MergedTree, StackedLayer } from '../layers/merge.ts'
import type { Manifest } from '../manifest.ts'

/** /etc/image-release: what a node can say of itself. The last layer of every image, so that it costs nothing to change. */
export function releaseText(image: Pick<Manifest, 'name' | 'created' | 'inputs' | 'source'>): string {
  const { name, created, inputs, source } = image
  return [
    `IMAGE_NAME=${name}`,
    ...(source === undefined ? [] : [`IMAGE_COMMIT=${source.commit}${source.dirty ? '+dirty' : ''}`]),
    ...(source?.branch === undefined ? [] : [`IMAGE_BRANCH=${source.branch}`]),
    `IMAGE_INPUTS=${inputs}`,
    `IMAGE_TIME=${created}`,
    '',
  ].join('\n')
}

export async function releaseLayer(dir: string, tree: MergedTree, text: string, time: number): Promise<StackedLayer> {
  const folder = tree.resolve('etc')
  const path = `${folder}/image-release`
  await makeDirectory(join(dir, folder))
  await writeFile(join(dir, path), text)
  // Whatever the umask of whoever builds.
  for (const [name, mode] of [
    ['', 0o755],
    [folder, 0o755],
    [path, 0o644],
  ] as const)
    await chmod(join(dir, name), mode)
  const common = { uid: 0, gid: 0, mtime: time }
  const sha256 = createHash('sha256').update(text).digest('hex')
  const entries: Entry[] = [
    ...(tree.get(folder) === undefined ? [{ ...common, type: 'directory' as const, path: folder, mode: 0o755 }] : []),
    { ...common, type: 'file', path, mode: 0o644, size: Buffer.byteLength(text), sha256 },
  ]
  return { root: dir, entries, gone: [], opaque: [] }
}
