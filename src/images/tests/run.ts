import { messageOf } from '../../lib/errors.ts'
import type { Check } from './check.ts'
import { Unknown } from './found.ts'
import { observe } from './kinds/observe.ts'
import { judge } from './matchers.ts'
import type { TestResult } from './report.ts'
import type { Subject } from './subject.ts'
import { KINDS } from './syntax.ts'

interface RunOptions {
  readonly signal: AbortSignal
  readonly only?: (id: string) => boolean
  readonly onResult?: (result: TestResult) => void
}

/**
 * Runs the checks of the subject's place, one after another in the order they are written: commands may well see what
 * others left behind.
 */
export async function runChecks(
  checks: readonly Check[],
  subject: Subject,
  { signal, only = () => true, onResult }: RunOptions,
): Promise<TestResult[]> {
  const results: TestResult[] = []
  for (const check of checks) {
    if (check.place !== subject.place || !only(check.id)) continue
    signal.throwIfAborted()
    const found = await runCheck(check, subject)
    // What was cut short says nothing about the image.
    signal.throwIfAborted()
    for (const result of found) {
      results.push(result)
      onResult?.(result)
    }
  }
  return results
}

async function runCheck(check: Check, subject: Subject): Promise<TestResult[]> {
  const attributes = Object.keys(check.expected)
  if (check.skip) return attributes.map(attribute => resultOf(check, attribute, { status: 'skipped' }))
  const began = performance.now()
  const seen = await observe(subject, check).catch((error: unknown) => new Unknown(messageOf(error)))
  const seconds = Math.round(performance.now() - began) / 1000
  const outcomes = attributes.map(attribute => resultOf(check, attribute, outcomeOf(check, attribute, seen)))
  // Attributes are looked up together: the time is that of the first.
  return outcomes.map((result, at) => (at === 0 ? { ...result, seconds } : result))
}

type Outcome = Pick<TestResult, 'status' | 'expected' | 'found' | 'message'>

function outcomeOf(check: Check, attribute: string, seen: Readonly<Record<string, unknown>> | Unknown): Outcome {
  const found = seen instanceof Unknown ? seen : (seen[attribute] ?? new Unknown('cannot be found out'))
  const { first } = KINDS[check.kind]
  if (first !== undefined && attribute !== first && !(seen instanceof Unknown) && seen[first] === false)
    return { status: 'skipped', message: `${first} is false` }
  const { ok, expected, found: shown } = judge(check.expected[attribute], found instanceof Unknown ? undefined : found)
  if (found instanceof Unknown) return { status: 'failed', expected, message: found.reason }
  return { status: ok ? 'passed' : 'failed', expected, found: shown }
}

function resultOf(check: Check, attribute: string, outcome: Outcome): TestResult {
  const { id, place, kind, name, title } = check
  const words = [outcome.status === 'failed' ? title : undefined, outcome.message].filter(word => word !== undefined)
  return {
    id,
    place,
    kind,
    name,
    attribute,
    ...outcome,
    ...(words.length > 0 && { message: words.join(': ') }),
    seconds: 0,
  }
}
