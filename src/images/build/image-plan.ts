import type { Recipe } from '../../site/recipe.ts'
import type { Site } from '../../site/site.ts'
import type { ModuleSpec } from '../modules/spec.ts'
import type { ImageStore } from '../store/store.ts'
import type { Lock } from './lock.ts'
import type { LayerMaker, PlannedStage } from './make.ts'
import type { PackageTools, Packaging } from './packages.ts'

/** Everything that has to be done for an image, in order, down to the last byte that goes into it. */
export interface ImagePlan {
  readonly name: string
  readonly recipe: Recipe
  readonly arch: string
  /** Those of its base included. */
  readonly stages: readonly PlannedStage[]
  readonly lock: Lock
  readonly lockFile: string
  /** The lock says something the file does not, and is to be written. */
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
