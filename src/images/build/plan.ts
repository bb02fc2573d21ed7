import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { siteInvalid } from '../../site/problems.ts'
import type { Recipe } from '../../site/recipe.ts'
import { type SiteRecipe, circleText, readRecipe, recipeNames } from '../../site/render-recipe.ts'
import { Draft } from './draft.ts'
import { filesStage } from './files.ts'
import type { ImagePlan, PlanWorld } from './image-plan.ts'
import { digestOf } from './inputs.ts'
import { type Lock, lockedIdentity, parseLock } from './lock.ts'
import { pruneStage } from './prune.ts'
import { requireEmulation, requireTools, toolsFor } from './tools.ts'

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
    const { site, siteDir } = this.#world
    const found = readRecipe(site, name)
    if (found.recipe === undefined) throw recipeInvalid(found)
    const recipe = found.recipe
    await requireTools(toolsFor(recipe))
    await requireEmulation(recipe.arch ?? this.#world.arch, this.#world.arch)
    const recipeDir = join(siteDir, 'images', name)
    const lockFile = join(recipeDir, 'lock.json')
    const before = await readLock(lockFile, name)
    const draft = new Draft(this.#world, name, recipe, recipeDir, before)

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
      lockChanged: !this.#world.frozen && (before === undefined || digestOf(before) !== digestOf(lock)),
      locked: digestOf([base?.locked, lockedIdentity(lock)]),
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
    // They change nothing in the image.
    `!images/${name}/tests`,
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
