import { randomInt } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Mutex } from '../../lib/mutex.ts'
import type { Site } from '../../site/site.ts'
import { LayerCache } from '../layers/cache.ts'
import type { Digest, Manifest } from '../manifest.ts'
import { siteModules } from '../modules/site.ts'
import type { ImageStore } from '../store/store.ts'
import { readTests } from '../tests/definitions.ts'
import { anchorsOf } from '../trust/signatures.ts'
import { assembleImage } from './assemble.ts'
import { PackageCache } from './fetch.ts'
import { initramfsKey } from './initramfs.ts'
import { digestOf } from './inputs.ts'
import { lockText } from './lock.ts'
import { LayerMaker, type MakerOptions, buildEnvironment } from './make.ts'
import type { ImagePlan } from './image-plan.ts'
import { Planner } from './plan.ts'
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
  /** Somebody wants to look at the root when a stage fails. */
  readonly onFailure?: MakerOptions['onFailure']
  /** Shared by builds of one process that run at once. */
  readonly turns?: Mutex
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
    turns: options.turns ?? new Mutex(),
  }
  const maker = new LayerMaker({
    layers,
    work: work.path,
    report,
    signal,
    ...(options.onFailure && { onFailure: options.onFailure }),
  })
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
    const { store, siteDir, site } = this.#options
    const tests = await testsOf(siteDir, plan.name)
    const lockFiles = await writeLocks(plan)
    const source = await sourceOf(siteDir, plan.paths)
    const inputs = await inputsOf(plan, source, site)
    const images = await store.images(plan.name)
    const previous = images[0]?.digest
    const same = images.find(image => image.inputs === inputs)
    const common = { name: plan.name, ...(previous && { previous }), ...(lockFiles && { lockFile: plan.lockFile }) }
    if (same !== undefined && (await isWhole(store, same.digest))) {
      const { tests: before, ...rest } = await store.manifest(same.digest)
      // With other tests it is another image, of the same bytes.
      const manifest = { ...rest, ...tests }
      const isNewest = same === images[0] && before?.digest === tests.tests?.digest
      const digest = isNewest ? same.digest : await store.publish(manifest)
      return { ...common, digest, manifest, isUnchanged: true }
    }
    const manifest = { ...(await this.#make(inputs, source)), ...tests }
    const digest = await store.publish(manifest)
    return { ...common, digest, manifest, isUnchanged: digest === previous }
  }

  async #make(inputs: Digest, source: Source | undefined): Promise<Manifest> {
    const { recipe, name, arch, lock, stages, base } = this.#plan
    const layers = await this.#maker.layersOf(stages)
    return assembleImage({
      ...this.#options,
      about: { name, arch, inputs, created: source?.time ?? lock.time, ...(source && { source: source.source }) },
      base:
        base === undefined
          ? undefined
          : { name: base.name, inputs: await inputsOf(base, undefined, this.#options.site) },
      recipe,
      layers,
      stages,
      lock,
      time: Math.floor(Date.parse(lock.time) / 1000),
      earlier: await this.#earlier(),
      work: this.#work,
      anchors: anchorsOf(this.#options.site.trust),
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

/** What it must pass before it may reach a node. */
async function testsOf(siteDir: string, name: string): Promise<Pick<Manifest, 'tests'>> {
  const at = `images/${name}/tests`
  const { digest, places } = await readTests(join(siteDir, at), at)
  return digest === undefined ? {} : { tests: { digest, places: [...places] } }
}

/** Everything that decides the bytes of an image. */
async function inputsOf(plan: ImagePlan, source: Source | undefined, { trust }: Site): Promise<Digest> {
  const { outputs, kernel, limits } = plan.recipe
  const last = plan.stages.at(-1)?.key
  const initramfs = await initramfsKey(kernel, plan.arch, anchorsOf(trust))
  const { name, arch, lock } = plan
  return `sha256:${digestOf({ name, arch, last, outputs, kernel, initramfs, limits, source, time: lock.time })}`
}

/** Also those of its bases: resolving one may have resolved the others. */
async function writeLocks(plan: ImagePlan): Promise<boolean> {
  if (plan.base !== undefined) await writeLocks(plan.base)
  if (!plan.lockChanged) return false
  // Of its own: two builds of one image may run at once.
  const temporary = `${plan.lockFile}.new-${randomInt(2 ** 47)}`
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
