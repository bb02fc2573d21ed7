import type { Anchors } from '../../boot/initramfs/verifier.ts'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { humanSize } from '../../lib/size.ts'
import type { Entry } from '../../lib/tree/entry.ts'
import type { Recipe } from '../../site/recipe.ts'
import { fileListDigest, packFileList } from '../file-list.ts'
import { largest, largestText } from '../largest.ts'
import { type MergedTree, type StackedLayer, mergeLayers } from '../layers/merge.ts'
import type { Artefact, Manifest } from '../manifest.ts'
import { installedPackages } from '../packages/installed.ts'
import { packageListText } from '../packages/list.ts'
import type { InstalledPackage } from '../packages/package.ts'
import { sbomText } from '../sbom.ts'
import { explainDisk } from '../store/disk.ts'
import type { ImageStore } from '../store/store.ts'
import { initramfsFor } from './initramfs.ts'
import { findKernel, versionOf } from './kernel.ts'
import { type Lock, lockText } from './lock.ts'
import type { PlannedStage } from './make.ts'
import { packRoot } from './pack.ts'
import { osRelease } from './os-release.ts'
import { releaseLayer, releaseText } from './release.ts'
import type { BuildReport } from './report.ts'

export interface Assembly {
  readonly about: Pick<Manifest, 'name' | 'inputs' | 'created' | 'source'> & { readonly arch: string }
  readonly base: Manifest['base']
  readonly recipe: Pick<Recipe, 'outputs' | 'kernel' | 'limits'>
  readonly layers: readonly StackedLayer[]
  readonly stages: readonly PlannedStage[]
  readonly lock?: Lock
  readonly time: number
  /** Images that may hold the same parts. */
  readonly earlier: readonly Manifest[]
  /** Artefacts that came with it and are taken as they are. */
  readonly given?: readonly Artefact[]
  /** What its initramfs trusts; nothing for one that is taken from elsewhere: only servers check that. */
  readonly anchors: Anchors
  readonly work: string
  readonly store: ImageStore
  readonly report: BuildReport
  readonly signal: AbortSignal
}

/** The last act: a tree is there, now it becomes artefacts and a manifest. Nothing is published yet. */
export async function assembleImage(assembly: Assembly): Promise<Manifest> {
  const { about, recipe, time, store, report, signal, given = [] } = assembly
  const { name, inputs, created, source } = about
  await mkdir(assembly.work, { recursive: true })
  // A root that is taken as it is must not be changed.
  const isOurs = !given.some(({ type }) => type === 'squashfs')
  const release = isOurs
    ? [await releaseLayer(join(assembly.work, 'release'), mergeLayers(assembly.layers), releaseText(about), time)]
    : []
  const layers = [...assembly.layers, ...release]
  const tree = mergeLayers(layers)
  const [mountPoint, upper, overlayWork] = ['root', 'upper', 'work'].map(name => join(assembly.work, name)) as [
    string,
    string,
    string,
  ]
  for (const dir of [mountPoint, upper, overlayWork]) await mkdir(dir)
  const overlay = { layers: layers.map(layer => layer.root), mountPoint }
  // rpm writes beside its database even when it only reads.
  const packages = await installedPackages(tree, { ...overlay, upper, work: overlayWork })
  const size = sizeOf(tree.entries)
  checkSize(name, size, recipe.limits.size, packages, tree)
  const brought = given.find(({ type }) => type === 'kernel')
  const kernel = brought === undefined ? findKernel(tree, recipe.kernel, name) : undefined
  const version = kernel?.version ?? (brought && (await versionOf(store.pathOf(brought.sha256))))
  const os = await osRelease(tree)

  report.begin(name, 'pack')
  try {
    const forms = recipe.outputs.filter(form => !given.some(({ type }) => type === form))
    const packed = await packRoot(tree, forms, {
      store,
      indexes: join(store.dir, 'indexes'),
      earlier: assembly.earlier,
      time,
      signal,
      overlay,
    })
    const needsOurs = version !== undefined && !given.some(({ type }) => type === 'initrd')
    const initramfs = needsOurs
      ? await initramfsFor(tree, version, recipe.kernel, about.arch, assembly.anchors)
      : undefined
    const sbom = sbomText({ name, digestOfInputs: inputs, created, packages, os })
    const artefacts: Artefact[] = [
      ...(kernel ? [{ type: 'kernel' as const, ...(await store.put(await readFile(tree.locate(kernel.file)))) }] : []),
      ...given,
      ...(initramfs ? [{ type: 'initrd' as const, ...(await store.put(initramfs)) }] : []),
      ...packed,
      { type: 'files', ...(await store.put(await packFileList(tree.entries))) },
      { type: 'packages', ...(await store.put(packageListText(packages))) },
      { type: 'sbom', ...(await store.put(sbom)) },
      { type: 'log', ...(await store.put(transcript(assembly.stages))) },
      ...(assembly.lock ? [{ type: 'lock' as const, ...(await store.put(lockText(assembly.lock))) }] : []),
    ]
    report.end('made')
    return {
      schema: 'muster.image/1',
      name,
      arch: about.arch as Manifest['arch'],
      created,
      inputs,
      tree: fileListDigest(tree.entries),
      ...(source && { source }),
      ...(assembly.base && { base: assembly.base }),
      ...(os && { os: { id: os.id, ...(os.version && { version: os.version }), ...(os.name && { name: os.name }) } }),
      ...(version !== undefined && {
        kernel: { version, modules: recipe.kernel === 'none' ? [] : [...(recipe.kernel?.modules ?? [])] },
      }),
      size,
      artefacts,
    }
  } catch (error) {
    report.end('failed')
    throw explainDisk(error, store.dir)
  }
}

function checkSize(
  name: string,
  size: number,
  limit: number | undefined,
  packages: readonly InstalledPackage[],
  tree: MergedTree,
): void {
  if (limit === undefined || size <= limit) return
  throw new MusterError('IMAGE_TOO_LARGE', `${name} has ${humanSize(size)}, its limit is ${humanSize(limit)}`, {
    details: largestText(largest(packages, tree.entries)).trimEnd().split('\n'),
  })
}

/** How the tree was made, the same every time; what the programs printed is kept beside the image (logs.ts). */
const transcript = (stages: readonly PlannedStage[]): string =>
  stages
    .map(({ image, title, key, time }) => `${image}: ${title}\t${key}\t${new Date(time * 1000).toISOString()}\n`)
    .join('')

const sizeOf = (entries: readonly Entry[]): number =>
  entries.reduce((sum, entry) => sum + (entry.type === 'file' && entry.linkTo === undefined ? entry.size : 0), 0)
