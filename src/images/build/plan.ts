import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from '../../lib/dirs.ts'
import { MusterError } from '../../lib/errors.ts'
import { siteInvalid } from '../../site/problems.ts'
import type { Recipe, Repository } from '../../site/recipe.ts'
import { type SiteRecipe, circleText, readRecipe, recipeNames } from '../../site/render-recipe.ts'
import type { Site } from '../../site/site.ts'
import { mergeLayers } from '../layers/merge.ts'
import type { ModuleSpec } from '../modules/spec.ts'
import { resolveModules } from '../modules/resolve.ts'
import { packageDatabase } from '../packages/database.ts'
import type { ImageStore } from '../store/store.ts'
import { type AptSource, DEBIAN_KEYRING, hostSources } from './apt.ts'
import { type PinnedBase, directoryBase, ociBase, ownBase, storedBase, tarBase } from './bases.ts'
import type { DnfRepository } from './dnf.ts'
import { filesStage } from './files.ts'
import { digestOf } from './inputs.ts'
import { type Lock, type LockedSet, parseLock } from './lock.ts'
import type { LayerMaker, PlannedStage } from './make.ts'
import {
  type PackageTools,
  type Packaging,
  debianStage,
  noPackaging,
  packagesStage,
  requestOf,
  resolvePackages,
} from './packages.ts'
import { osRelease } from './os-release.ts'
import { pruneStage } from './prune.ts'
import type { Stage } from './stage.ts'
import { stepStages } from './steps.ts'
import { requireEmulation, requireTools, toolsFor } from './tools.ts'

/** Raised when the way stages are made changes: what was made before is then made anew. */
const FORMAT = 1

/** Everything that has to be done for an image, in order, down to the last byte that goes into it. */
export interface ImagePlan {
  readonly name: string
  readonly recipe: Recipe
  readonly arch: string
  /** Those of its base included. */
  readonly stages: readonly PlannedStage[]
  readonly lock: Lock
  readonly lockFile: string
  /** The lock says something the file does not. */
  readonly lockChanged: boolean
  readonly packaging?: Packaging
  /** Digest of everything locked, down to the first base. */
  readonly locked: string
  readonly base?: ImagePlan
  /** Paths in the site that went into it, for git. */
  readonly paths: readonly string[]
}

export interface PlanWorld {
  readonly site: Site
  readonly siteDir: string
  readonly arch: string
  readonly store: ImageStore
  readonly maker: LayerMaker
  readonly tools: PackageTools
  readonly modules: () => Promise<ReadonlyMap<string, ModuleSpec>>
  /** Images whose locks are moved to what the mirrors have now. */
  readonly update: ReadonlySet<string>
  /** Nothing may be resolved: the locks must say it all. */
  readonly frozen: boolean
  readonly now: Date
}

export class Planner {
  readonly #world: PlanWorld
  readonly #plans = new Map<string, Promise<ImagePlan>>()

  constructor(world: PlanWorld) {
    this.#world = world
  }

  plan(name: string, above: readonly string[] = []): Promise<ImagePlan> {
    if (above.includes(name)) {
      const circle = [...above.slice(above.indexOf(name)), name]
      return Promise.reject(new MusterError('RECIPE_CYCLE', circleText(circle)))
    }
    let plan = this.#plans.get(name)
    if (plan === undefined) this.#plans.set(name, (plan = this.#make(name, above)))
    return plan
  }

  async #make(name: string, above: readonly string[]): Promise<ImagePlan> {
    const { site, siteDir, update } = this.#world
    const found = readRecipe(site, name)
    if (found.recipe === undefined) throw recipeInvalid(found)
    const recipe = found.recipe
    await requireTools(toolsFor(recipe))
    await requireEmulation(recipe.arch ?? this.#world.arch, this.#world.arch)
    const recipeDir = join(siteDir, 'images', name)
    const lockFile = join(recipeDir, 'lock.json')
    const before = await readLock(lockFile, name)
    const draft = new Draft(this.#world, name, recipe, recipeDir, update.has(name) ? undefined : before)

    const base =
      recipe.from.kind === 'image' && recipeNames(site).includes(recipe.from.settings)
        ? await this.plan(recipe.from.settings, [...above, name])
        : undefined
    if (base !== undefined) draft.startFrom(base)
    else await draft.start(found.file)
    await draft.addPackages()
    const files = await filesStage(recipeDir, recipe, found.context)
    draft.add(files)
    await draft.addSteps()
    draft.add(pruneStage(recipe))
    const lock = draft.lock()
    return {
      name,
      recipe,
      arch: draft.arch,
      stages: draft.stages,
      lock,
      lockFile,
      lockChanged: before === undefined || digestOf(before) !== digestOf(lock),
      locked: digestOf([base?.locked, lock]),
      paths: [
        ...new Set([...(base?.paths ?? []), ...pathsOf(name, recipe, found.usesVars || files?.isTemplated === true)]),
      ],
      ...(draft.packaging && { packaging: draft.packaging }),
      ...(base && { base }),
    }
  }
}

/** What git is asked about: which commit last changed the inputs. */
function pathsOf(name: string, recipe: Recipe, usesVars: boolean): string[] {
  const hasModules = recipe.steps.some(step => step.modules !== undefined)
  const hasPlays = recipe.steps.some(step => step.ansible !== undefined)
  return [
    `images/${name}`,
    ...(usesVars ? ['site.yaml', 'groups'] : []),
    ...(hasModules ? ['modules', 'site.yaml'] : []),
    ...(hasPlays ? ['ansible'] : []),
    ...(recipe.from.kind === 'own' ? ['bases'] : []),
  ]
}

async function readLock(file: string, image: string): Promise<Lock | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const lock = parseLock(text)
  if (lock === undefined)
    throw new MusterError('RECIPE_INVALID', `images/${image}/lock.json is no lock of ours`, {
      hint: 'bring it back from git, or remove it: the next build writes a new one',
    })
  return lock
}

const recipeInvalid = (found: SiteRecipe): MusterError => {
  const site = siteInvalid(found.problems)
  return new MusterError(
    'RECIPE_INVALID',
    `${found.file} has ${found.problems.length === 1 ? '1 error' : `${found.problems.length} errors`}`,
    { details: site.details },
  )
}

/** A plan in the making. */
class Draft {
  readonly arch: string
  readonly stages: PlannedStage[] = []
  packaging: Packaging | undefined
  readonly #world: PlanWorld
  readonly #name: string
  readonly #recipe: Recipe
  readonly #recipeDir: string
  /** What the lock says that may be used; nothing when it is to be moved. */
  readonly #known: Lock | undefined
  readonly #time: string
  #base: Lock['base']
  #packages: LockedSet | undefined
  #lower = ''

  constructor(world: PlanWorld, name: string, recipe: Recipe, recipeDir: string, known: Lock | undefined) {
    this.#world = world
    this.#name = name
    this.#recipe = recipe
    this.#recipeDir = recipeDir
    this.#known = known
    this.arch = recipe.arch ?? world.arch
    this.#time = known?.time ?? `${world.now.toISOString().slice(0, 19)}Z`
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

  startFrom(base: ImagePlan): void {
    if (base.arch !== this.arch)
      throw new MusterError(
        'RECIPE_INVALID',
        `${this.#name} is for ${this.arch}, its base ${base.name} for ${base.arch}`,
        { hint: 'give both the same arch' },
      )
    this.stages.push(...base.stages)
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
    this.#base = isKnown ? known : { request, pin: (await pinned.pin()) as never }
    this.add(pinned.stage((this.#base as { pin: unknown }).pin))
    this.#lower = digestOf(this.#base)
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

  async #startDebian(settings: Extract<Recipe['from'], { kind: 'debian' }>['settings']): Promise<void> {
    const { suite, mirrors, components, keyring } = settings
    const key = keyring === undefined ? DEBIAN_KEYRING : join(this.#recipeDir, keyring)
    const request = digestOf({
      debian: suite,
      components,
      mirrors,
      arch: this.arch,
      keyring: keyring === undefined ? undefined : digestOf(await readFile(key, 'base64')),
    })
    const known = this.#known?.base
    let set = known !== undefined && 'packages' in known && known.request === request ? known : undefined
    if (set === undefined) {
      this.#refuseWhenFrozen()
      const sources =
        mirrors === undefined
          ? await hostSources(suite, components)
          : [{ name: suite, urls: mirrors, suite, components, key }]
      if (sources.length === 0)
        throw new MusterError(
          'RECIPE_INVALID',
          `images/${this.#name}/image.yaml: from: this machine's apt has no mirror for ${suite}`,
          {
            hint: 'name one: from: { debian: { suite: …, mirrors: [http://…] } }',
          },
        )
      const packaging: Packaging = {
        kind: 'apt',
        family: 'debian',
        sources: sources.map(source => ({ ...source, key })),
      }
      const found = await resolvePackages(
        packaging,
        this.arch,
        ['?or(?essential,?priority(required))', 'apt'],
        this.#kept('base'),
        [],
        this.#world.tools,
      )
      set = { request, ...found }
    }
    this.#base = set
    const sources: AptSource[] = Object.entries(set.repositories).map(([name, repository]) => ({
      name,
      urls: repository.urls,
      suite: repository.suite ?? suite,
      components: repository.components ?? [],
      key,
    }))
    this.packaging = { kind: 'apt', family: 'debian', sources }
    this.add(debianStage(suite, this.arch, sources, set, this.#world.tools))
    this.#lower = digestOf(set.packages)
  }

  #refuseWhenFrozen(): void {
    if (this.#world.frozen)
      throw new MusterError(
        'LOCK_STALE',
        `images/${this.#name}/lock.json does not say everything the recipe asks for`,
        {
          hint: 'build once without --locked, and commit the lock',
        },
      )
  }

  #kept(section: 'base' | 'packages'): LockedSet['packages'] {
    const known = this.#known?.[section]
    return known !== undefined && 'packages' in known ? known.packages : []
  }

  async addPackages(): Promise<void> {
    const recipe = this.#recipe
    const modules = await this.#modules()
    const wanted = [...recipe.packages, ...(await this.#modulePackages(modules))]
    if (wanted.length === 0) return
    const packages = [...new Set(wanted)]
    const packaging = this.packaging ?? (await this.#detectPackaging())
    if (packaging === undefined) throw noPackaging(this.#name)
    const added = this.#repositories(packaging)
    const all = withRepositories(packaging, added)
    this.packaging = all
    const request = digestOf([this.#lower, await requestOf(all, this.arch, packages)])
    let set = this.#known?.packages?.request === request ? this.#known.packages : undefined
    if (set === undefined) {
      this.#refuseWhenFrozen()
      const lower = await this.#world.maker.layersOf(this.stages)
      set = {
        request,
        ...(await resolvePackages(all, this.arch, packages, this.#kept('packages'), lower, this.#world.tools)),
      }
    }
    this.#packages = set
    this.add(packagesStage(all, this.arch, packages, set, added, this.#world.tools))
  }

  #repositories(packaging: Packaging): (AptSource | DnfRepository)[] {
    return Object.entries(this.#recipe.repositories).map(([name, repository]) => {
      if (repository.key === undefined && repository.trusted !== true)
        throw new MusterError('RECIPE_INVALID', `images/${this.#name}/image.yaml: repositories.${name}: has no key`, {
          hint: 'give the key that signs it with key:, or say trusted: true',
        })
      const common = {
        name,
        urls: [repository.url],
        ...(repository.key !== undefined && { key: join(this.#recipeDir, repository.key) }),
      }
      return packaging.kind === 'dnf' ? common : aptSource(common, repository)
    })
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
