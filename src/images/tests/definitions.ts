import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { type Problem, formatProblem, tidyProblems } from '../../site/problems.ts'
import { digestOfFiles } from '../build/inputs.ts'
import type { Digest } from '../manifest.ts'
import type { Check, ExecTest } from './check.ts'
import { listFolder } from './folder.ts'
import { type TestFile, readTestFile } from './test-file.ts'
import type { TestPlace } from './subject.ts'
import { PLACES } from './syntax.ts'

/** The tests of an image: what stands in the folder images/NAME/tests. */
export interface ImageTests {
  readonly checks: readonly Check[]
  readonly execs: readonly ExecTest[]
  /** Those that are needed, in the order root, container, vm. */
  readonly places: readonly TestPlace[]
  /** Of every file in the folder; nothing where there is none. */
  readonly digest?: Digest
}

/**
 * Reads images/NAME/tests: every YAML file that lies in it directly, and those in folders below that a gossfile names.
 * `at` is what errors call the folder.
 */
export async function readTests(dir: string, at: string): Promise<ImageTests> {
  const { files, isEmpty, problems } = await examine(dir, at)
  if (problems.length > 0) throw invalid(at, problems)
  if (isEmpty) return { checks: [], execs: [], places: [] }
  const checks = files.flatMap(file => file.checks)
  const execs = files.flatMap(file => file.execs)
  const needed = new Set([...checks, ...execs].map(({ place }) => place))
  const places = PLACES.filter(place => needed.has(place))
  return { checks, execs, places, digest: `sha256:${await digestOfFiles(dir)}` }
}

/** All that is wrong with a folder of tests: what readTests would refuse it for. */
export const problemsOfTests = async (dir: string, at: string): Promise<readonly Problem[]> =>
  (await examine(dir, at)).problems

interface Examined {
  readonly files: readonly TestFile[]
  /** There is no folder, or nothing in it. */
  readonly isEmpty: boolean
  readonly problems: readonly Problem[]
}

/** What a folder holds is only read where the folder itself is as it should be. */
async function examine(dir: string, at: string): Promise<Examined> {
  const folder = await listFolder(dir, at)
  const isEmpty = folder.files.length === 0
  if (folder.problems.length > 0) return { files: [], isEmpty, problems: folder.problems }
  const files = await reachedFiles(dir, at, folder.files)
  return { files, isEmpty, problems: files.flatMap(file => file.problems) }
}

/** Each file once, however many name it; one that is named to be skipped is left out, unless another names it too. */
async function reachedFiles(dir: string, at: string, all: readonly string[]): Promise<TestFile[]> {
  const read = new Map<string, TestFile>()
  const readOnce = async (path: string): Promise<TestFile> => {
    const known = read.get(path)
    if (known !== undefined) return known
    const file = readTestFile(at, path, await readFile(join(dir, path)), all)
    read.set(path, file)
    return file
  }
  const top = all.filter(path => /^[^/]+\.ya?ml$/.test(path))
  const includes = (await Promise.all(top.map(readOnce))).flatMap(file => file.includes)
  const wanted = new Set(includes.filter(({ skip }) => !skip).map(({ path }) => path))
  const skipped = new Set(includes.filter(({ skip }) => skip).map(({ path }) => path))
  const queue = top.filter(path => wanted.has(path) || !skipped.has(path))
  const reached = new Set(queue)
  for (const path of queue) {
    for (const include of (await readOnce(path)).includes) {
      if (include.skip || reached.has(include.path)) continue
      reached.add(include.path)
      queue.push(include.path)
    }
  }
  return [...reached].sort().flatMap(path => read.get(path) ?? [])
}

function invalid(at: string, problems: readonly Problem[]): MusterError {
  const tidy = tidyProblems(problems)
  const count = tidy.length === 1 ? '1 error' : `${tidy.length} errors`
  return new MusterError('RECIPE_INVALID', `${at} has ${count}`, { details: tidy.map(formatProblem) })
}
