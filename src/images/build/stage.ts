import type { MergedTree, StackedLayer } from '../layers/merge.ts'
import type { Overlay, SandboxOptions } from './sandbox.ts'

/** One step of a build; what it leaves in `upper` becomes a layer, kept under the digest of everything that goes into it. */
export interface Stage {
  /** 'packages', 'module lmod' */
  readonly title: string
  /** Everything the outcome depends on, besides the layers below. */
  readonly inputs: unknown
  make(work: StageWork): Promise<void>
  /** What it leaves is taken as it is: nothing is cleaned out of it. */
  readonly isKeptWhole?: boolean
}

export interface StageWork {
  readonly lower: readonly StackedLayer[]
  /** The layers below as one tree. */
  readonly tree: MergedTree
  /** The same, mounted where a sandbox wants it; changes go to `upper`. */
  readonly overlay: Overlay
  readonly upper: string
  /** An empty directory that is gone afterwards. */
  readonly scratch: string
  /** What every program is run with: environment, where its output goes, how it is stopped. */
  readonly sandbox: SandboxOptions
}
