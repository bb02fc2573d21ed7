import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MusterError } from '../../lib/errors.ts'
import { sourceOf } from '../build/source.ts'
import { openWorkDir } from '../build/workdir.ts'
import { openTree } from '../open-tree.ts'
import type { ImageStore, ResolvedImage } from '../store/store.ts'
import type { ImageTests } from './definitions.ts'
import { runExec } from './execs.ts'
import { openContainer } from './places/container.ts'
import { openRoot } from './places/root.ts'
import { keepReport } from './kept.ts'
import type { TestReport, TestResult } from './report.ts'
import { runChecks } from './run.ts'
import type { OpenSubject, TestPlace } from './subject.ts'

/** What is to be booted in a virtual machine, and what may be used for it. */
export interface MachineToOpen {
  readonly image: ResolvedImage
  readonly store: ImageStore
  /** Its root, unpacked; only to be looked at. */
  readonly tree: string
  /** The folder of the tests, to be seen inside. */
  readonly tests: string
  /** An empty directory. */
  readonly work: string
  readonly signal: AbortSignal
  /** Milliseconds until it must be ready. */
  readonly timeout?: number
}

export interface TestOptions {
  readonly store: ImageStore
  readonly image: ResolvedImage
  readonly tests: ImageTests
  readonly siteDir: string
  /** Only these places; all that its tests need unless said. */
  readonly places?: readonly TestPlace[]
  /** Only these tests: the report then counts for nothing, and is not kept. */
  readonly only?: (id: string) => boolean
  /** Boots the image in a virtual machine. */
  readonly openMachine?: (machine: MachineToOpen) => Promise<OpenSubject>
  readonly signal: AbortSignal
  readonly onPlace?: (place: TestPlace) => void
  readonly onResult?: (result: TestResult) => void
}

/** Runs the tests of an image, all of one place in the same one, and keeps the report with the image. */
export async function testImage(options: TestOptions): Promise<TestReport> {
  const { store, image, tests, signal } = options
  if (tests.digest === undefined) throw new MusterError('TESTS_MISSING', `the image ${image.name} has no tests`)
  if (image.manifest.tests?.digest !== tests.digest)
    throw new MusterError('TESTS_MISSING', `${image.name} was built with other tests than those of the site`, {
      hint: `muster image build ${image.name} takes the new ones; nothing else is done again`,
    })
  const places = tests.places.filter(place => options.places?.includes(place) ?? true)
  const began = new Date()
  const results: TestResult[] = []
  const tree = await openTree(store, image.manifest, signal)
  await using _ = tree
  await using work = await openWorkDir(join(store.dir, 'work'))
  for (const place of places) {
    options.onPlace?.(place)
    const scratch = join(work.path, place)
    await mkdir(scratch)
    results.push(...(await testPlace(options, place, tree.root, scratch)))
  }
  const source = await sourceOf(options.siteDir, [`images/${image.name}/tests`])
  const report: TestReport = {
    schema: 'muster.tests/1',
    image: { name: image.name, digest: image.digest },
    tests: tests.digest,
    ...(source && { source: source.source }),
    began: began.toISOString(),
    seconds: Math.round(Date.now() - began.getTime()) / 1000,
    places: options.only === undefined ? [...places] : [],
    results,
  }
  if (options.only === undefined) await keepReport(store, report)
  return report
}

async function testPlace(options: TestOptions, place: TestPlace, tree: string, work: string): Promise<TestResult[]> {
  const { tests, signal, siteDir, image, only } = options
  const folder = join(siteDir, 'images', image.name, 'tests')
  const told = { signal, ...(options.onResult && { onResult: options.onResult }) }
  const [inside, scratch] = [join(work, 'inside'), join(work, 'scratch')]
  for (const dir of [inside, scratch]) await mkdir(dir)
  await using subject = await openPlace(options, place, tree, inside, folder)
  const results = await runChecks(tests.checks, subject, { ...told, ...(only && { only }) })
  for (const test of tests.execs) {
    if (test.place !== place || only?.(test.id) === false) continue
    const pid = 'pid' in subject ? { pid: subject.pid as number } : {}
    results.push(...(await runExec(test, { subject, tests: folder, tree, ...pid }, { ...told, work: scratch })))
  }
  return results
}

async function openPlace(
  options: TestOptions,
  place: TestPlace,
  tree: string,
  work: string,
  tests: string,
): Promise<OpenSubject> {
  const { signal, store, image, openMachine } = options
  if (place === 'root') return openRoot(tree, { work, signal, tests })
  if (place === 'container') return openContainer(tree, { work, signal, tests })
  if (openMachine === undefined)
    throw new MusterError('BUILD_NEEDS', 'nothing here can boot an image in a virtual machine', {
      hint: `test it with: muster image test ${image.name}`,
    })
  mustRunInside(options)
  return openMachine({ image, store, tree, tests, work, signal })
}

/** A container is seen from outside, by its processes; a virtual machine is not. */
function mustRunInside({ tests, only }: TestOptions): void {
  const outside = tests.execs.filter(test => test.place === 'vm' && test.on === 'outside' && only?.(test.id) !== false)
  if (outside.length === 0) return
  throw new MusterError('RECIPE_INVALID', 'no program outside can look into a virtual machine', {
    details: outside.map(({ file, line, name }) => `${file}:${line}: exec.${name}: on: outside, where: vm`),
    hint: 'let it run inside (on: inside), or look at the image elsewhere (where: root, or container)',
  })
}
