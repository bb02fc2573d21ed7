import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { MusterError } from '../../lib/errors.ts'
import { humanSize } from '../../lib/size.ts'
import type { Entry } from '../../lib/tree/entry.ts'
import type { Site } from '../../site/site.ts'
import { largest, largestText } from '../largest.ts'
import { LayerCache } from '../layers/cache.ts'
import { type MergedTree, mergeLayers } from '../layers/merge.ts'
import type { Artefact, Digest, Manifest } from '../manifest.ts'
import { siteModules } from '../modules/site.ts'
import { installedPackages } from '../packages/installed.ts'
import { packageListText } from '../packages/list.ts'
import type { InstalledPackage } from '../packages/package.ts'
import { sbomText } from '../sbom.ts'
import type { ImageStore } from '../store/store.ts'
import { PackageCache } from './fetch.ts'
import { digestOf } from './inputs.ts'
import { findKernel } from './kernel.ts'
import { lockText } from './lock.ts'
import { LayerMaker, buildEnvironment } from './make.ts'
import { packRoot } from './pack.ts'
import { type ImagePlan, Planner, osRelease } from './plan.ts'
import { releaseLayer, releaseText } from './release.ts'
import type { BuildReport } from './report.ts'
import { requireTools } from './tools.ts'
import { type Source, sourceOf } from './source.ts'
import { openWorkDir } from './workdir.ts'

export interface BuildOptions {
  readonly site: Site
  readonly siteDir: string
  readonly store: ImageStore
  readonly arch: string
  readonly report: BuildReport
  readonly signal: AbortSignal
  readonly update?: boolean
  readonly frozen?: boolean
  readonly shellOnFailure?: boolean
  readonly now: Date
}

export interface BuiltImage {
  readonly name: string
  readonly digest: Digest
  readonly manifest: Manifest
  /** It was there already: nothing that goes into it has changed. */
  readonly isUnchanged: boolean
  /** The newest image of this name before. */
  readonly previous?: Digest
  /** The lock file was written: commit it. */
  readonly lockFile?: string
}

/** From recipes to published images: plan, make the layers that are missing, pack, publish. */
export async function buildImages(names: readonly string[], options: BuildOptions): Promise<BuiltImage[]> {
  await requireTools()
  const { store, report, signal } = options
  const layers = await LayerCache.open(join(store.dir, 'layers'))
  await using work = await openWorkDir(join(store.dir, 'work'))
  let scratches = 0
  const tools = {
    cache: new PackageCache(join(store.dir, 'packages')),
    state: join(store.dir, 'state'),
    scratch: async () => {
      const dir = join(work.path, `scratch-${scratches++}`)
      await mkdir(dir)
      return dir
    },
    sandbox: { signal, onOutput: (chunk: Buffer) => report.output(chunk), env: buildEnvironment(0) },
    note: (line: string) => report.note(line),
  }
  const maker = new LayerMaker({ layers, work: work.path, report, signal, ...(options.shellOnFailure && { shellOnFailure: true }) })
  const modules = siteModules(options.site, options.siteDir, join(store.dir, 'state'))
  const planner = new Planner({
    site: options.site,
    siteDir: options.siteDir,
    arch: options.arch,
    store,
    maker,
    tools,
    modules,
    update: new Set(options.update === true ? names : []),
    frozen: options.frozen === true,
    now: options.now,
  })
  const built: BuiltImage[] = []
  for (const name of names) {
    const plan = await planner.plan(name)
    built.push(await new ImageBuild(plan, options, maker, work.path).run())
    await layers.flush()
  }
  return built
}

/** The last act for one image: its tree is there, now it becomes artefacts and a manifest. */
class ImageBuild {
  readonly #plan: ImagePlan
  readonly #options: BuildOptions
  readonly #maker: LayerMaker
  readonly #work: string

  constructor(plan: ImagePlan, options: BuildOptions, maker: LayerMaker, work: string) {
    this.#plan = plan
    this.#options = options
    this.#maker = maker
    this.#work = join(work, plan.name)
  }

  async run(): Promise<BuiltImage> {
    const plan = this.#plan
    const { store, siteDir } = this.#options
    const lockFiles = await writeLocks(plan)
    const source = await sourceOf(siteDir, plan.paths)
    const inputs = inputsOf(plan, source)
    const images = await store.images(plan.name)
    const previous = images[0]?.digest
    const same = images.find(image => image.inputs === inputs)
    const common = { name: plan.name, ...(previous && { previous }), ...(lockFiles && { lockFile: plan.lockFile }) }
    if (same !== undefined && (await isWhole(store, same.digest))) {
      const manifest = await store.manifest(same.digest)
      if (same !== images[0]) await store.publish(manifest)
      return { ...common, digest: same.digest, manifest, isUnchanged: true }
    }
    const manifest = await this.#make(inputs, source)
    const digest = await store.publish(manifest)
    return { ...common, digest, manifest, isUnchanged: digest === previous }
  }

  async #make(inputs: Digest, source: Source | undefined): Promise<Manifest> {
    const { recipe, name, arch, lock, stages, base } = this.#plan
    const { report, signal, store } = this.#options
    const time = Math.floor(Date.parse(lock.time) / 1000)
    const created = source?.time ?? lock.time
    const layers = await this.#maker.layersOf(stages)
    const about = { name, created, inputs, ...(source && { source: source.source }) }
    await mkdir(this.#work, { recursive: true })
    layers.push(await releaseLayer(join(this.#work, 'release'), mergeLayers(layers), releaseText(about), time))
    const tree = mergeLayers(layers)
    const mountPoint = join(this.#work, 'root')
    await mkdir(mountPoint)
    const overlay = { layers: layers.map(layer => layer.root), mountPoint }
    const packages = await installedPackages(tree, overlay)
    const size = sizeOf(tree.entries)
    this.#checkSize(size, packages, tree)
    const kernel = findKernel(tree, recipe.kernel, name)
    const os = await osRelease(tree)

    report.begin(name, 'pack')
    try {
      const packed = await packRoot(tree, recipe.outputs, {
        store,
        indexes: join(store.dir, 'indexes'),
        earlier: await this.#earlier(),
        time,
        signal,
        overlay,
      })
      const sbom = sbomText({ name, digestOfInputs: inputs, created, packages, ...(os && { os }) })
      const artefacts: Artefact[] = [
        ...(kernel ? [{ type: 'kernel' as const, ...(await store.put(await readFile(tree.locate(kernel.file)))) }] : []),
        ...packed,
        { type: 'files', ...(await store.put(await compressed(filesText(tree.entries)))) },
        { type: 'packages', ...(await store.put(packageListText(packages))) },
        { type: 'sbom', ...(await store.put(sbom)) },
        { type: 'lock', ...(await store.put(lockText(lock))) },
      ]
      report.end('made')
      return {
        schema: 'muster.image/1',
        ...about,
        arch: arch as Manifest['arch'],
        tree: treeDigest(tree.entries),
        ...(base && { base: { name: base.name, inputs: inputsOf(base, undefined) } }),
        ...(os && { os: { id: os.id, ...(os.version && { version: os.version }), ...(os.name && { name: os.name }) } }),
        ...(kernel && { kernel: { version: kernel.version, modules: recipe.kernel === 'none' ? [] : [...(recipe.kernel?.modules ?? [])] } }),
        size,
        artefacts,
      }
    } catch (error) {
      report.end('failed')
      throw error
    }
  }

  #checkSize(size: number, packages: readonly InstalledPackage[], tree: MergedTree): void {
    const limit = this.#plan.recipe.limits.size
    if (limit === undefined || size <= limit) return
    throw new MusterError('IMAGE_TOO_LARGE', `${this.#plan.name} has ${humanSize(size)}, its limit is ${humanSize(limit)}`, {
      details: largestText(largest(packages, tree.entries)).trimEnd().split('\n'),
    })
  }

  /** The images whose packs are likely to hold the same things: the last of this name, and of its bases. */
  async #earlier(): Promise<Manifest[]> {
    const { store } = this.#options
    const found: Manifest[] = []
    for (let plan: ImagePlan | undefined = this.#plan; plan !== undefined; plan = plan.base) {
      const latest = await store.latest(plan.name)
      const manifest = latest === undefined ? undefined : await store.manifest(latest.digest).catch(() => undefined)
      if (manifest !== undefined) found.push(manifest)
    }
    return found
  }
}

/** Everything that decides the bytes of an image. */
function inputsOf(plan: ImagePlan, source: Source | undefined): Digest {
  const { outputs, kernel, limits } = plan.recipe
  const last = plan.stages.at(-1)?.key
  return `sha256:${digestOf({ name: plan.name, arch: plan.arch, last, outputs, kernel, limits, source, time: plan.lock.time })}`
}

/** Also those of its bases: resolving one may have resolved the others. */
async function writeLocks(plan: ImagePlan): Promise<boolean> {
  if (plan.base !== undefined) await writeLocks(plan.base)
  if (!plan.lockChanged) return false
  const temporary = `${plan.lockFile}.new`
  await writeFile(temporary, lockText(plan.lock))
  await rename(temporary, plan.lockFile)
  return true
}

async function isWhole(store: ImageStore, digest: Digest): Promise<boolean> {
  const manifest = await store.manifest(digest).catch(() => undefined)
  if (manifest === undefined) return false
  const there = await Promise.all(manifest.artefacts.map(({ sha256 }) => store.has(sha256)))
  return there.every(Boolean)
}

/** One entry per line: what `image diff` compares. */
export const filesText = (entries: readonly Entry[]): string => entries.map(entry => `${JSON.stringify(entry)}\n`).join('')

export const treeDigest = (entries: readonly Entry[]): Digest =>
  `sha256:${createHash('sha256').update(filesText(entries)).digest('hex')}`

const compress = promisify(zstdCompress)
const compressed = (text: string): Promise<Buffer> => compress(Buffer.from(text))

const sizeOf = (entries: readonly Entry[]): number =>
  entries.reduce((sum, entry) => sum + (entry.type === 'file' && entry.linkTo === undefined ? entry.size : 0), 0)

