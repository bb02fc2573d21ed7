import type { Digest, Manifest } from '../manifest.ts'
import type { Blob } from '../store/disk.ts'
import type { ImageStore } from '../store/store.ts'
import { TestReport, passedPlaces } from './report.ts'
import type { TestPlace } from './subject.ts'

/** What an earlier run of the same tests found elsewhere stays. */
export async function keepReport(store: ImageStore, report: TestReport): Promise<void> {
  const before = await reportOf(store, report.image.digest as Digest)
  const isNew = (place: TestPlace): boolean => report.places.includes(place)
  const kept = before?.tests === report.tests ? before : undefined
  const merged: TestReport = {
    ...report,
    places: [...(kept?.places.filter(place => !isNew(place)) ?? []), ...report.places],
    results: [...(kept?.results.filter(({ place }) => !isNew(place)) ?? []), ...report.results],
  }
  const blob = await store.put(JSON.stringify(merged))
  await store.describe(report.image.digest as Digest, about => ({ ...about, report: blob }))
}

const LARGEST = 64 * 2 ** 20

/** The report that is kept with an image; undefined where there is none, or none that says something about it. */
export async function reportOf(store: ImageStore, digest: Digest): Promise<TestReport | undefined> {
  const { report } = await store.about(digest)
  return report === undefined ? undefined : readReport(store, digest, report)
}

/** Somebody may have sent it: only what is a report about this image counts. */
export async function readReport(store: ImageStore, digest: string, { sha256 }: Blob): Promise<TestReport | undefined> {
  const text = await store.read(sha256, LARGEST).catch(() => undefined)
  if (text === undefined) return undefined
  try {
    const report = TestReport.parse(JSON.parse(text.toString('utf8')))
    return report.image.digest === digest ? report : undefined
  } catch {
    return undefined
  }
}

/** Where an image still has to pass its tests: in all places it has tests for, or in those that are named. */
export async function placesToPass(
  store: ImageStore,
  digest: Digest,
  { tests }: Manifest,
  places: readonly TestPlace[] = tests?.places ?? [],
): Promise<TestPlace[]> {
  if (places.length === 0) return []
  const report = await reportOf(store, digest)
  const passed = report === undefined || report.tests !== tests?.digest ? new Set() : passedPlaces(report)
  return places.filter(place => !passed.has(place))
}
