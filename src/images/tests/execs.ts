import { MusterError, messageOf } from '../../lib/errors.ts'
import { bringTests } from './copy-tests.ts'
import type { ExecTest } from './check.ts'
import { runOutside } from './places/outside.ts'
import { type TestCase, messageFrom } from './readers/case.ts'
import { readJUnit } from './readers/junit.ts'
import { readOscap } from './readers/oscap.ts'
import { readTap } from './readers/tap.ts'
import type { TestResult } from './report.ts'
import { type OpenSubject, type SubjectResult, TESTS_INSIDE, TIMED_OUT } from './subject.ts'

/** What a program that is a test can be shown. */
export interface ExecWorld {
  readonly subject: OpenSubject
  /** The folder with the tests. */
  readonly tests: string
  readonly tree: string
  /** The first process of the container. */
  readonly pid?: number
}

export interface ExecOptions {
  /** A directory for scratch. */
  readonly work: string
  readonly signal: AbortSignal
  readonly onResult?: (result: TestResult) => void
}

/** Results of OpenSCAP hold the whole benchmark: tens of megabytes. */
const KEPT = 128 * 1024 * 1024
const LAST_LINES = 10

/** Runs a program that is a test, and reads what it says on standard output. */
export async function runExec(
  test: ExecTest,
  world: ExecWorld,
  { work, signal, onResult }: ExecOptions,
): Promise<TestResult[]> {
  const began = performance.now()
  let cases: TestCase[]
  try {
    const result = await start(test, world, work, signal)
    cases = casesOf(test, result, performance.now() - began >= test.timeout)
  } catch (error) {
    cases = [{ attribute: 'run', status: 'failed', message: messageOf(error) }]
  }
  // What was cut short says nothing about the image.
  signal.throwIfAborted()
  const seconds = Math.round(performance.now() - began) / 1000
  const results = cases.map((one, at) => resultOf(test, one, at === 0 ? seconds : 0))
  for (const result of results) onResult?.(result)
  return results
}

async function start(test: ExecTest, world: ExecWorld, work: string, signal: AbortSignal): Promise<SubjectResult> {
  const { subject, ...shown } = world
  const argv = typeof test.run === 'string' ? ['/bin/sh', '-c', test.run] : test.run
  const limits = { timeout: test.timeout, ...(test.reads !== 'exit' && { keep: KEPT }) }
  if (test.on === 'outside') return runOutside(argv, { ...shown, ...limits, work, signal })
  await bringTests(subject, world.tests)
  return subject.run(argv, { ...limits, cwd: TESTS_INSIDE, env: { MUSTER_TESTS: TESTS_INSIDE } })
}

function casesOf(test: ExecTest, result: SubjectResult, isLate: boolean): TestCase[] {
  const exit = exitCase(test, result, isLate)
  if (test.reads === 'exit') return [exit]
  const cases = readCases(test, result.stdout)
  // The exit code of a runner says that something failed, which we know in more detail.
  const isNews =
    exit.status === 'failed' && (result.exitCode === TIMED_OUT || cases.every(one => one.status !== 'failed'))
  return isNews ? [...cases, exit] : cases
}

/** What cannot be read is a failure that says where. */
function readCases({ reads, minScore }: ExecTest, stdout: Buffer): TestCase[] {
  if (stdout.length >= KEPT) return [{ attribute: 'output', status: 'failed', message: 'prints too much to be read' }]
  const text = stdout.toString('utf8')
  try {
    if (reads === 'tap') return readTap(text)
    return reads === 'junit' ? readJUnit(text) : readOscap(text, minScore)
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    return [{ attribute: 'output', status: 'failed', message: error.message }]
  }
}

/** oscap ends with 2 where rules have failed, which its results say better. */
function exitCase(test: ExecTest, { exitCode, stdout, stderr }: SubjectResult, isLate: boolean): TestCase {
  const wanted = test.reads === 'oscap' ? [...test.exitCodes, 2] : test.exitCodes
  const attribute = 'exit-code'
  const expected = test.exitCodes.join(' or ')
  const found = String(exitCode)
  if (wanted.includes(exitCode)) return { attribute, status: 'passed', expected, found }
  const shown = stderr.length > 0 || test.reads !== 'exit' ? stderr : stdout
  const words = shown.toString('utf8').trimEnd().split('\n').slice(-LAST_LINES)
  // Some programs end with 124 themselves, as timeout(1) does.
  const late = exitCode === TIMED_OUT && isLate ? [`was stopped after ${test.timeout / 1000} s`] : []
  const message = messageFrom([...late, ...words].join('\n'))
  return { attribute, status: 'failed', expected, found, ...(message !== '' && { message }) }
}

function resultOf({ id, place, name }: ExecTest, { seconds, ...one }: TestCase, otherwise: number): TestResult {
  return { id, place, kind: 'exec', name, ...one, seconds: seconds ?? otherwise }
}
