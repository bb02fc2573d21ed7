import { join } from 'node:path'
import { exists } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import type { Recipe, Repository } from '../../site/recipe.ts'
import { mergeLayers } from '../layers/merge.ts'
import { resolveModules } from '../modules/resolve.ts'
import type { ModuleSpec } from '../modules/spec.ts'
import { packageDatabase } from '../packages/database.ts'
import { type AptSource, hostSources } from './apt.ts'
import type { PinnedBase } from './bases/base.ts'
import { directoryBase } from './bases/directory.ts'
import { ociBase } from './bases/oci.ts'
import { ownBase } from './bases/own.ts'
import { storedBase } from './bases/stored.ts'
import { tarBase } from './bases/tar.ts'
import {
  DEBIAN_ESSENTIALS,
  type DebianSettings,
  debianKey,
  debianRequest,
  debianSources,
  lockedSources,
} from './debian.ts'
import type { DnfRepository } from './dnf.ts'
import type { ImagePlan, PlanWorld } from './image-plan.ts'
import { digestOf } from './inputs.ts'
import { type Lock, type LockedSet, isSameLocked, lockedIdentity, withAddresses } from './lock.ts'
import type { PlannedStage } from './make.ts'
import { osRelease } from './os-release.ts'
import { type Packaging, debianStage, noPackaging, packagesStage, requestOf, resolvePackages } from './packages.ts'
import type { Stage } from './stage.ts'
import { stepStages } from './steps.ts'
import { ofImage } from './trouble.ts'

/** Raised when the way stages are made changes: what was made before is then made anew. */
const FORMAT = 1

/** The plan of one image in the making: its stages, and what they lock. */
export class Draft {
  readonly arch: string
  readonly stages: PlannedStage[] = []
  packaging: Packaging | undefined
  readonly #world: PlanWorld
  readonly #name: string
  readonly #recipe: Recipe
  readonly #recipeDir: string
  /** What the lock says that may be used; nothing when it is to be moved. */
  readonly #known: Lock | undefined
  /** What it says when it is to be moved: where all turns out to be the same, its time stays as well. */
  readonly #moving: Lock | undefined
  #time: string
  /** Stages of the images below, which have their own time. */
  #inherited = 0
  #base: Lock['base']
  #packages: LockedSet | undefined
  #lower = ''

  constructor(world: PlanWorld, name: string, recipe: Recipe, recipeDir: string, before: Lock | undefined) {
    this.#world = world
    this.#name = name
    this.#recipe = recipe
    this.#recipeDir = recipeDir
    this.#known = world.update.has(name) ? undefined : before
    this.#moving = world.update.has(name) ? before : undefined
    this.arch = recipe.arch ?? world.arch
    this.#time = before?.time ?? timeOf(world.now)
  }

  lock(): Lock {
    return {
      schema: 'muster.lock/1',
      time: this.#time,
      ...(this.#base && { base: this.#base }),
      ...(this.#packages && { packages: this.#packages }),
    }
  }

  add(stage: Stage | undefined): void {
    if (stage === undefined) return
    const time = Math.floor(Date.parse(this.#time) / 1000)
    const below = this.stages.at(-1)?.key ?? ''
    this.stages.push({
      ...stage,
      image: this.#name,
      time,
      key: digestOf([FORMAT, below, time, stage.title, stage.inputs]),
    })
  }

  /** Something new was resolved: from here on, and before, it is the time of today that counts. */
  #moveTimeUnlessSame(section: 'base' | 'packages'): void {
    if (this.#moving === undefined || isSameLocked(this.lock()[section], this.#moving[section])) return
    this.#time = timeOf(this.#world.now)
    for (const stage of this.stages.splice(this.#inherited)) this.add(stage)
  }

  startFrom(base: ImagePlan): void {
    if (base.arch !== this.arch)
      throw new MusterError(
        'RECIPE_INVALID',
        `${this.#name} is for ${this.arch}, its base ${base.name} for ${base.arch}`,
        { hint: 'give both the same arch' },
      )
    this.stages.push(...base.stages)
    this.#inherited = base.stages.length
    this.packaging = base.packaging
    this.#lower = base.locked
  }

  async start(file: string): Promise<void> {
    const { from } = this.#recipe
    if (from.kind === 'debian') return this.#startDebian(from.settings)
    if (from.kind === 'dnf') {
      const { release, platform, family, database = databaseOf(family, release) } = from.settings
      this.packaging = {
        kind: 'dnf',
        family,
        release,
        database,
        repositories: [],
        ...(platform !== undefined && { platform }),
      }
      if (this.#recipe.packages.length === 0)
        throw new MusterError('RECIPE_INVALID', `${file}: an image from dnf needs packages`, {
          hint: 'name at least one, such as bash',
        })
      return
    }
    const pinned = await this.#pinnedBase(from, file)
    const request = digestOf(pinned.request)
    const known = this.#known?.base
    const isKnown = known !== undefined && 'pin' in known && known.request === request
    if (!isKnown) this.#refuseWhenFrozen()
    this.#base = isKnown ? known : { request, pin: (await this.#asked(pinned.pin())) as never }
    this.#moveTimeUnlessSame('base')
    this.add(pinned.stage((this.#base as { pin: unknown }).pin))
  }

  #pinnedBase(from: Recipe['from'], file: string): Promise<PinnedBase> {
    const facts = { recipeDir: this.#recipeDir, image: this.#name, arch: this.arch, sandbox: this.#world.tools.sandbox }
    switch (from.kind) {
      case 'tar':
        return tarBase(facts, from.settings)
      case 'directory':
        return directoryBase(facts, from.settings)
      case 'oci':
        return ociBase(facts, from.settings)
      case 'image':
        return storedBase(this.#world.store, from.settings, { file })
      case 'own':
        return ownBase(
          facts,
          join(this.#world.siteDir, 'bases'),
          from.name,
          from.settings,
          join(this.#world.tools.state, 'bases', from.name),
        )
      default:
        throw new Error(`no such base: ${from.kind}`)
    }
  }

  async #startDebian(settings: DebianSettings): Promise<void> {
    const key = debianKey(settings, this.#recipeDir)
    if (settings.keyring !== undefined && !(await exists(key)))
      throw new MusterError(
        'RECIPE_INVALID',
        `images/${this.#name}/image.yaml: from.debian.keyring: there is no ${settings.keyring} beside the recipe`,
      )
    const request = await debianRequest(settings, this.arch, key)
    const known = this.#known?.base
    let set = known !== undefined && 'packages' in known && known.request === request ? known : undefined
    if (set === undefined) {
      this.#refuseWhenFrozen()
      const from = await debianSources(settings, key, this.#name)
      const packaging: Packaging = { kind: 'apt', family: 'debian', sources: from }
      const { tools } = this.#world
      set = {
        request,
        ...(await this.#asked(resolvePackages(packaging, this.arch, DEBIAN_ESSENTIALS, this.#kept('base'), [], tools))),
      }
    }
    const sources = lockedSources(set, settings, key)
    const current = withAddresses(set, sources)
    this.#base = current
    this.#moveTimeUnlessSame('base')
    this.packaging = { kind: 'apt', family: 'debian', sources }
    this.add(debianStage(settings.suite, this.arch, sources, current, this.#world.tools))
  }

  /** Mirrors and registries, for this image. */
  async #asked<Answer>(answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      throw ofImage(this.#name, error)
    }
  }

  #refuseWhenFrozen(): void {
    if (this.#world.frozen)
      throw new MusterError('LOCK_STALE', `images/${this.#name}/lock.json does not say everything the recipe asks for`)
  }

  #kept(section: 'base' | 'packages'): LockedSet['packages'] {
    const known = this.#known?.[section]
    return known !== undefined && 'packages' in known ? known.packages : []
  }

  async addPackages(): Promise<void> {
    const recipe = this.#recipe
    const modules = await this.#modules()
    const wanted = [...recipe.packages, ...(await this.#modulePackages(modules))]
    if (wanted.length === 0) return this.#moveTimeUnlessSame('packages')
    const packages = [...new Set(wanted)]
    const packaging = this.packaging ?? (await this.#detectPackaging())
    if (packaging === undefined) throw noPackaging(this.#name)
    const added = await this.#repositories(packaging)
    const all = withRepositories(packaging, added)
    this.packaging = all
    const below = digestOf([this.#lower, lockedIdentity(this.lock())])
    const request = digestOf([below, await requestOf(all, this.arch, packages)])
    let set = this.#known?.packages?.request === request ? this.#known.packages : undefined
    if (set === undefined) {
      this.#refuseWhenFrozen()
      const lower = await this.#world.maker.layersOf(this.stages)
      set = {
        request,
        ...(await this.#asked(
          resolvePackages(all, this.arch, packages, this.#kept('packages'), lower, this.#world.tools),
        )),
      }
    }
    const sources = all.kind === 'apt' ? all.sources : all.repositories
    this.#packages = withAddresses(set, sources)
    this.#moveTimeUnlessSame('packages')
    this.add(packagesStage(all, this.arch, packages, this.#packages, added, this.#world.tools))
  }

  async #repositories(packaging: Packaging): Promise<(AptSource | DnfRepository)[]> {
    const found: (AptSource | DnfRepository)[] = []
    for (const [name, repository] of Object.entries(this.#recipe.repositories)) {
      const here = `images/${this.#name}/image.yaml: repositories.${name}`
      const key = repository.key === undefined ? undefined : join(this.#recipeDir, repository.key)
      if (key === undefined && repository.trusted !== true)
        throw new MusterError('RECIPE_INVALID', `${here}: has no key`, {
          hint: 'give the key that signs it with key:, or say trusted: true',
        })
      if (key !== undefined && !(await exists(key)))
        throw new MusterError('RECIPE_INVALID', `${here}.key: there is no ${repository.key} beside the recipe`)
      const common = { name, urls: [repository.url], ...(key !== undefined && { key }) }
      found.push(packaging.kind === 'dnf' ? common : aptSource(common, repository))
    }
    return found
  }

  /** Of a base that came as a whole: what its own files say. */
  async #detectPackaging(): Promise<Packaging | undefined> {
    const tree = mergeLayers(await this.#world.maker.layersOf(this.stages))
    const database = packageDatabase(path => tree.get(path) !== undefined)
    const os = await osRelease(tree)
    if (database?.manager === 'dpkg') {
      const sources = os?.codename === undefined ? [] : await hostSources(os.codename, ['main'])
      return { kind: 'apt', family: 'debian', sources }
    }
    if (database?.manager === 'rpm')
      return {
        kind: 'dnf',
        family: os?.family ?? 'redhat',
        release: os?.version ?? '',
        database: `/${database.dbpath}`,
        repositories: [],
      }
    return undefined
  }

  async #modules(): Promise<ModuleSpec[]> {
    const names = this.#recipe.steps.flatMap(step => step.modules ?? [])
    return names.length === 0 ? [] : resolveModules(names, await this.#world.modules())
  }

  async #modulePackages(modules: readonly ModuleSpec[]): Promise<string[]> {
    const wanting = modules.filter(({ packages }) => Object.values(packages).some(list => (list ?? []).length > 0))
    if (wanting.length === 0) return []
    const family =
      this.packaging?.family ??
      (await osRelease(mergeLayers(await this.#world.maker.layersOf(this.stages))))?.family ??
      'other'
    return wanting.flatMap(({ packages }) => [
      ...(packages.all ?? []),
      ...((packages as Record<string, readonly string[] | undefined>)[family] ?? []),
    ])
  }

  async addSteps(): Promise<void> {
    const ansibleDir = join(this.#world.siteDir, 'ansible')
    const hasShared = await exists(ansibleDir)
    const { group } = this.#recipe
    const facts = {
      image: this.#name,
      arch: this.arch,
      recipeDir: this.#recipeDir,
      groups: group === undefined ? [] : [group].flat(),
      ...(hasShared && { ansibleDir }),
    }
    const done = new Set<string>()
    for (const step of this.#recipe.steps) {
      const modules =
        step.modules === undefined
          ? []
          : resolveModules(step.modules, await this.#world.modules()).filter(({ name }) => !done.has(name))
      for (const { name } of modules) done.add(name)
      for (const stage of await stepStages(step, modules, facts)) this.add(stage)
    }
  }
}

const timeOf = (now: Date): string => `${now.toISOString().slice(0, 19)}Z`

/** Fedora moved it with release 36, Red Hat with 10, SUSE long before. */
const databaseOf = (family: string, release: string): string =>
  family === 'suse' || Number.parseInt(release, 10) >= 10 ? '/usr/lib/sysimage/rpm' : '/var/lib/rpm'

const aptSource = (
  common: { name: string; urls: string[]; key?: string },
  { suite, components, trusted }: Repository,
): AptSource => ({
  ...common,
  suite: suite ?? './',
  components: components ?? (suite === undefined || suite.endsWith('/') ? [] : ['main']),
  ...(trusted === true && { trusted }),
})

const withRepositories = (packaging: Packaging, added: readonly (AptSource | DnfRepository)[]): Packaging =>
  packaging.kind === 'apt'
    ? { ...packaging, sources: [...packaging.sources, ...(added as readonly AptSource[])] }
    : { ...packaging, repositories: [...packaging.repositories, ...added] }
