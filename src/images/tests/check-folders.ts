import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { compareNames } from '../../lib/tree/entry.ts'
import { type Problem, tidyProblems } from '../../site/problems.ts'
import { problemsOfTests } from './definitions.ts'
import { listFolder } from './folder.ts'

export interface TestFolders {
  readonly problems: readonly Problem[]
  /** Nothing is wrong, but somebody may want to know. */
  readonly warnings: readonly Problem[]
}

/** Everything that is wrong with the tests of a site's images; `recipes` are the images it has recipes of. */
export async function checkTestFolders(siteDir: string, recipes: ReadonlySet<string>): Promise<TestFolders> {
  const names = await readdir(join(siteDir, 'images')).catch(() => [])
  const problems: Problem[] = []
  const warnings: Problem[] = []
  for (const name of names.sort(compareNames)) {
    const at = `images/${name}/tests`
    if (recipes.has(name)) problems.push(...(await problemsOfTests(join(siteDir, at), at)))
    else if ((await listFolder(join(siteDir, at), at)).files.length > 0)
      warnings.push({ file: at, line: 1, column: 1, message: `${UNUSED} images/${name}/image.yaml` })
  }
  return { problems: tidyProblems(problems), warnings }
}

const UNUSED = 'nothing runs these tests: there is no recipe'
