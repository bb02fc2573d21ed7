import { watch } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { requireTools } from '../../images/build/tools.ts'
import type { ImageStore, ResolvedImage } from '../../images/store/store.ts'
import { readTests } from '../../images/tests/definitions.ts'
import { placesToPass, reportOf } from '../../images/tests/kept.ts'
import { type TestReport, reportLines, toJUnit } from '../../images/tests/report.ts'
import type { TestPlace } from '../../images/tests/subject.ts'
import { testImage } from '../../images/tests/test-image.ts'
import { openTrial } from '../../lab/trial/open-trial.ts'
import { MusterError, messageOf } from '../../lib/errors.ts'
import { openSite } from '../../site/site.ts'
import { directorySource } from '../../site/source.ts'
import { siteDir } from '../connect.ts'
import type { Call } from '../define.ts'
import { type DataOption, imageStore, imagesToRead, shortDigest } from '../images.ts'
import type { Io } from '../io.ts'
import { Progress } from '../progress.ts'
import { type BuildFlags, buildOne } from './image-build.ts'

interface TestFlags extends BuildFlags {
  readonly place?: string
  readonly only?: string
  readonly junit?: string
  readonly watch?: boolean
}

const EVERYTHING = (): boolean => true
const PLACES: readonly TestPlace[] = ['root', 'container', 'vm']

export async function test(call: Call<TestFlags>): Promise<number> {
  const { options } = call
  await requireTools([['unsquashfs', 'squashfs-tools']])
  const places = placesOf(options.place)
  if (options.watch === true) return watchTests(call, places)
  const report = await runOnce(call, places)
  await show(call, report)
  return hasFailed(report) ? 1 : 0
}

export async function report(call: Call<DataOption & { junit?: string }>): Promise<void> {
  const {
    io,
    options,
    args: [reference = ''],
  } = call
  const store = await imagesToRead(io, options)
  const { name, digest } = await store.find(reference)
  const kept = await reportOf(store, digest)
  if (kept === undefined)
    throw new MusterError('TESTS_MISSING', `${name} ${shortDigest(digest)} has not been tested`, {
      hint: `muster image test ${name}`,
    })
  await show(call, kept)
}

/** The newest image of a name has passed its tests, or this fails: what passed before is not run again. */
export async function mustPass(io: Io, store: ImageStore, dir: string, name: string): Promise<void> {
  const image = await store.resolve(name)
  const places = await placesToPass(store, image.digest, image.manifest)
  if (places.length === 0) return
  const report = await runTests(io, store, dir, image, { places })
  if (!hasFailed(report)) return
  throw new MusterError('TESTS_FAILED', `${name} ${shortDigest(image.digest)} has failed its tests`, {
    details: reportLines(report),
  })
}

const hasFailed = ({ results }: TestReport): boolean => results.some(({ status }) => status === 'failed')

async function show({ io, out, options }: Call<{ junit?: string }>, report: TestReport): Promise<void> {
  if (options.junit !== undefined) await writeFile(resolve(io.cwd, options.junit), toJUnit(report))
  const { name, digest } = report.image
  await out.result(report, () => [
    ...reportLines(report),
    `${name} ${shortDigest(digest)} ${hasFailed(report) ? 'has failed' : 'has passed'}`,
  ])
}

function placesOf(given: string | undefined): readonly TestPlace[] | undefined {
  if (given === undefined) return undefined
  const places = given.split(',')
  const wrong = places.find(place => !(PLACES as readonly string[]).includes(place))
  if (wrong !== undefined) throw new MusterError('USAGE', `${wrong} is no place: ${PLACES.join(', ')}`)
  return places as TestPlace[]
}

async function runOnce(
  call: Call<TestFlags>,
  places: readonly TestPlace[] | undefined,
  more: (id: string) => boolean = EVERYTHING,
): Promise<TestReport> {
  const {
    io,
    options,
    args: [reference = ''],
  } = call
  const store = await imageStore(io, options)
  const dir = await siteDir(io, options)
  const image = await imageFor(call, store, dir, reference)
  const { only } = options
  const isPart = only !== undefined || more !== EVERYTHING
  return runTests(io, store, dir, image, {
    ...(places && { places }),
    ...(isPart && { only: id => more(id) && (only === undefined || id.includes(only)) }),
  })
}

async function runTests(
  io: Io,
  store: ImageStore,
  dir: string,
  image: ResolvedImage,
  which: { readonly places?: readonly TestPlace[]; readonly only?: (id: string) => boolean },
): Promise<TestReport> {
  const at = `images/${image.name}/tests`
  const tests = await readTests(join(dir, at), at)
  using progress = new Progress(io)
  const stages = stagesOf(progress, image.name)
  const report = await testImage({
    store,
    image,
    tests,
    siteDir: dir,
    ...which,
    openMachine: openTrial,
    signal: io.interrupted,
    onPlace: place => stages.next(place),
    onResult: result => progress.note(`${result.id}: ${result.attribute} ${result.status}`),
  })
  stages.end()
  return report
}

/** By name: built first, if anything of it has changed. */
async function imageFor(
  call: Call<TestFlags>,
  store: ImageStore,
  dir: string,
  reference: string,
): Promise<ResolvedImage> {
  if (reference.includes('@')) return store.resolve(reference)
  const site = await openSite(await directorySource(dir))
  const { name, digest, manifest } = await buildOne(call, reference, { dir, site, store })
  return { name, digest, manifest }
}

/** A stage of the progress for each place. */
function stagesOf(progress: Progress, name: string): { next(place: TestPlace): void; end(): void } {
  let isOpen = false
  const end = (): void => {
    if (isOpen) progress.end('made')
    isOpen = false
  }
  const next = (place: TestPlace): void => {
    end()
    progress.begin(name, `tests in ${place}`)
    isOpen = true
  }
  return { next, end }
}

const CALM = 200

/** First everything; then, where only tests changed, those of the files that did, and otherwise everything again. */
async function watchTests(call: Call<TestFlags>, places: readonly TestPlace[] | undefined): Promise<number> {
  const { io, out, options } = call
  const dir = await siteDir(io, options)
  let last: TestReport | undefined
  for await (const changed of changes(io, dir)) {
    const files = changed.every(path => TESTS.test(path)) ? changed.map(path => path.replace(TESTS, '')) : []
    const concerned = (id: string): boolean => files.some(file => id.startsWith(`${file}: `))
    try {
      last = await runOnce(call, places, files.length > 0 && last !== undefined ? concerned : EVERYTHING)
      await show(call, last)
    } catch (error) {
      if (io.interrupted.aborted) break
      out.note(`error: ${messageOf(error)}`)
      if (error instanceof MusterError) for (const line of error.details) out.note(`  ${line}`)
    }
    out.note('waiting for a change')
  }
  return last !== undefined && hasFailed(last) ? 1 : 0
}

/** What git and builds write themselves. */
const OURS = /^\.git(\/|$)|\/lock\.json(\.new-\d+)?$/
const TESTS = /^images\/[^/]+\/tests\//

/** Begins with nothing; then the paths of the site that changed, those of one moment together. */
async function* changes(io: Io, dir: string): AsyncGenerator<string[]> {
  const paths = new Set<string>()
  let wake = Promise.withResolvers<void>()
  // From before the first run: a change during it counts.
  using _ = watching(dir, path => {
    paths.add(path)
    wake.resolve()
  })
  const stop = (): void => wake.resolve()
  io.interrupted.addEventListener('abort', stop)
  yield []
  while (!io.interrupted.aborted) {
    await wake.promise
    await pause(CALM, undefined, { signal: io.interrupted }).catch(() => {})
    if (io.interrupted.aborted) break
    const seen = [...paths]
    paths.clear()
    wake = Promise.withResolvers()
    yield seen
  }
  io.interrupted.removeEventListener('abort', stop)
}

function watching(dir: string, onChange: (path: string) => void): Disposable {
  const watcher = watch(dir, { recursive: true }, (_, path) => {
    if (path !== null && !OURS.test(path)) onChange(path)
  })
  return { [Symbol.dispose]: () => watcher.close() }
}
