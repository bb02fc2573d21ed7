import { isAbsolute, resolve } from 'node:path'
import { exists } from '../../../lib/dirs.ts'
import { MusterError } from '../../../lib/errors.ts'
import type { SandboxOptions } from '../sandbox.ts'
import type { Stage } from '../stage.ts'

/**
 * Where an image can start besides a distribution's packages. Each is pinned (which bytes exactly; goes into the lock) and
 * then unpacked into an empty directory, by a tool that sees nothing else it could write to.
 */
export interface PinnedBase {
  /** What the recipe asks for, as far as it decides the pin. */
  readonly request: unknown
  /** Finds out which bytes exactly; only asked when the lock does not say. */
  pin(): Promise<unknown>
  stage(pin: unknown): Stage
}

export interface BaseFacts {
  readonly recipeDir: string
  readonly image: string
  readonly arch: string
  readonly sandbox: SandboxOptions
}

const fromRecipe = (facts: BaseFacts, path: string): string =>
  isAbsolute(path) ? path : resolve(facts.recipeDir, path)

export async function existing(facts: BaseFacts, path: string, kind: string): Promise<string> {
  const full = fromRecipe(facts, path)
  if (!(await exists(full)))
    throw new MusterError('RECIPE_INVALID', `from: there is no ${kind} ${path}`, {
      hint: 'paths are relative to the folder of the recipe',
    })
  return full
}

/** What a tool could not read: the archive is to blame, not the tool. */
export const damaged = (error: unknown, reference: string, kind: string): unknown =>
  error instanceof MusterError
    ? new MusterError('ARCHIVE_INVALID', `${reference} is damaged or no ${kind}`, {
        details: error.details.slice(-5),
        cause: error,
      })
    : error
