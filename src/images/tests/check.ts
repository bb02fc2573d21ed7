import type { TestPlace } from './subject.ts'
import type { CheckKind } from './syntax.ts'

/** One resource of goss: several attributes of one thing. */
export interface Check {
  /** ssh.yaml: service ssh */
  readonly id: string
  readonly file: string
  readonly line: number
  readonly place: TestPlace
  readonly kind: CheckKind
  readonly name: string
  readonly title?: string
  readonly skip: boolean
  /** Attribute → value or matcher, in the order they are checked. */
  readonly expected: Readonly<Record<string, unknown>>
  /** How to look: time-outs, headers, and what is looked at where it is not the name. */
  readonly settings: Readonly<Record<string, unknown>>
}

/** A program whose exit code, TAP, JUnit or OpenSCAP results are read. */
export interface ExecTest {
  readonly id: string
  readonly file: string
  readonly line: number
  readonly place: TestPlace
  readonly name: string
  /** Arguments, or a text for /bin/sh -c. */
  readonly run: readonly string[] | string
  readonly reads: 'exit' | 'tap' | 'junit' | 'oscap'
  readonly on: 'inside' | 'outside'
  /** Milliseconds. */
  readonly timeout: number
  readonly minScore?: number
  readonly exitCodes: readonly number[]
}
