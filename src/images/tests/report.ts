import { z } from 'zod'
import { Digest } from '../manifest.ts'
import type { TestPlace } from './subject.ts'
import { PLACES } from './syntax.ts'

/** One attribute of a check, or one case of a program that is a test. */
export const TestResult = z.strictObject({
  id: z.string().describe('Which test: ssh.yaml: service ssh.'),
  place: z.enum(PLACES).describe('Where it ran.'),
  kind: z.string().describe('Kind of resource, or exec.'),
  name: z.string().describe('What was looked at.'),
  attribute: z.string().describe('What of it.'),
  status: z.enum(['passed', 'failed', 'skipped']).describe('How it ended.'),
  expected: z.string().optional().describe('What should be.'),
  found: z.string().optional().describe('What is.'),
  message: z.string().optional().describe('Why, for people.'),
  seconds: z.number().min(0).describe('How long it took.'),
})
export type TestResult = z.infer<typeof TestResult>

/** What became of an image's tests. */
export const TestReport = z.strictObject({
  schema: z.literal('muster.tests/1').describe('Kind and version of this document.'),
  image: z
    .strictObject({ name: z.string().describe('Its name.'), digest: Digest.describe('Its digest.') })
    .describe('The image that was tested.'),
  tests: Digest.describe('Digest of the folder of tests.'),
  source: z
    .strictObject({
      commit: z.string().describe('The last commit that changed the tests.'),
      branch: z.string().optional().describe('The branch that was checked out.'),
      dirty: z.boolean().describe('Whether there were changes that were not committed.'),
    })
    .optional()
    .describe('Where the tests come from.'),
  began: z.iso.datetime().describe('When they began.'),
  seconds: z.number().min(0).describe('How long they took.'),
  places: z.array(z.enum(PLACES)).describe('Where all of them were run.'),
  score: z.record(z.string(), z.number()).optional().describe('Scores, by test.'),
  results: z.array(TestResult).describe('What became of each.'),
})
export type TestReport = z.infer<typeof TestReport>

/** Where everything was run, and nothing failed. */
export function passedPlaces(report: TestReport): Set<TestPlace> {
  const failed = new Set(report.results.filter(({ status }) => status === 'failed').map(({ place }) => place))
  return new Set(report.places.filter(place => !failed.has(place)))
}

interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
}

function countsOf(results: readonly TestResult[]): Counts {
  const of = (status: TestResult['status']): number => results.filter(result => result.status === status).length
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0)
  return { passed: of('passed'), failed: of('failed'), skipped: of('skipped'), seconds }
}

/** The places that have results or were run without any, in their order. */
function byPlace(report: TestReport): (readonly [TestPlace, readonly TestResult[]])[] {
  return PLACES.map(place => [place, report.results.filter(result => result.place === place)] as const).filter(
    ([place, results]) => results.length > 0 || report.places.includes(place),
  )
}

/** For the terminal: each failure in full, then a line for each place. */
export function reportLines(report: TestReport): string[] {
  const failures = report.results.filter(({ status }) => status === 'failed').flatMap(failureLines)
  const places = byPlace(report)
  const width = Math.max(0, ...places.map(([place]) => place.length))
  const counts = places.map(([place, results]) => {
    const { passed, failed, skipped, seconds } = countsOf(results)
    const some = [
      `${passed} passed`,
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ]
    const whole = report.places.includes(place) ? '' : ', not all of them run'
    return `${place.padEnd(width)}  ${some.join(', ')} (${seconds.toFixed(1)} s)${whole}`
  })
  return [...failures, ...counts]
}

function failureLines({ id, place, attribute, expected, found, message }: TestResult): string[] {
  const facts = [
    ['expected', expected],
    ['found', found],
    ['why', message],
  ] as const
  return [
    `failed: ${printable(id)}: ${printable(attribute)} (${place})`,
    ...facts.flatMap(([word, text]) => (text === undefined ? [] : [`  ${word.padEnd(8)}  ${printable(text)}`])),
  ]
}

/** On one line, and without what would move the cursor. */
const printable = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll(/\p{Cc}/gu, '')

/** JUnit's XML, which every CI reads: a suite for each place. */
export function toJUnit(report: TestReport): string {
  const total = countsOf(report.results)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ name: report.image.name, ...sums(report.results, total), time: seconds(report.seconds) })}>`,
    ...byPlace(report).flatMap(([place, results]) => suite(report, place, results)),
    '</testsuites>',
    '',
  ].join('\n')
}

function suite(report: TestReport, place: TestPlace, results: readonly TestResult[]): string[] {
  const counts = countsOf(results)
  const head = { name: place, ...sums(results, counts), timestamp: report.began, time: seconds(counts.seconds) }
  const className = `${report.image.name}.${place}`
  return [
    `  <testsuite${attributes(head)}>`,
    ...results.flatMap(result => testcase(className, result)),
    '  </testsuite>',
  ]
}

function testcase(classname: string, result: TestResult): string[] {
  const { id, attribute, status, expected, found, message } = result
  const open = `    <testcase${attributes({ classname, name: `${id}: ${attribute}`, time: seconds(result.seconds) })}`
  if (status === 'passed') return [`${open}/>`]
  if (status === 'skipped') return [`${open}>`, `      <skipped${attributes({ message })}/>`, '    </testcase>']
  const facts = [
    ...(expected === undefined ? [] : [`expected ${expected}`]),
    ...(found === undefined ? [] : [`found ${found}`]),
  ]
  const short = message ?? facts.join(', ')
  return [
    `${open}>`,
    `      <failure${attributes({ message: short })}>${escape(facts.join('\n'))}</failure>`,
    '    </testcase>',
  ]
}

const sums = (results: readonly TestResult[], { failed, skipped }: Counts): Readonly<Record<string, string>> => ({
  tests: String(results.length),
  failures: String(failed),
  skipped: String(skipped),
})

const seconds = (value: number): string => value.toFixed(3)

function attributes(values: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(values)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${escape(value).replaceAll('\n', '&#10;')}"`))
    .join('')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** Characters that XML 1.0 cannot hold, written however, are left out. */
function escape(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replaceAll(/[&<>"']/g, character => ENTITIES[character] ?? '')
}
