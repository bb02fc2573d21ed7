import type { TestResult } from '../report.ts'

/** One of the things a program that is a test has tried. */
export interface TestCase extends Pick<TestResult, 'attribute' | 'status' | 'expected' | 'found' | 'message'> {
  readonly seconds?: number
}

/** More than anybody reads; whoever prints more has lost control. */
export const MOST_CASES = 20_000

export const tooMany: TestCase = {
  attribute: 'output',
  status: 'failed',
  message: `has more than ${MOST_CASES.toLocaleString('en')} cases`,
}

const NAME = 200
const MESSAGE = 2000

export const nameOf = (text: string): string => shorten(text.replaceAll(/\s+/g, ' ').trim(), NAME)

export const messageFrom = (text: string): string => shorten(text.trim(), MESSAGE)

const shorten = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)
