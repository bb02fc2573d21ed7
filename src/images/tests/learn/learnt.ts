import type { CheckKind } from '../syntax.ts'

/** What can be learnt, by the name people ask for it with. */
export const TOPICS = ['package', 'service', 'user', 'group', 'file', 'mount', 'kernel-param', 'port'] as const
export type Topic = (typeof TOPICS)[number]

export interface LearntCheck {
  readonly name: string
  readonly attributes: Readonly<Record<string, unknown>>
}

/** Checks with one origin, which a comment tells. */
export interface LearntGroup {
  readonly topic: Topic
  /** What they are written as: mounts and kernel parameters are lines of files. */
  readonly kind: CheckKind
  readonly comment: string
  readonly checks: readonly LearntCheck[]
}

/** Letters that mean nothing to YAML or to a terminal, in names of people, packages, services and files alike. */
const PLAIN = /^[\w./][\w.@:+/~-]{0,254}$/
export const isPlain = (text: string): boolean => PLAIN.test(text)

/** For people: nothing that a terminal would obey. */
export const shown = (text: string): string => text.replaceAll(/[^\u0020-\u007E]/g, '?').slice(0, 80)

/** What is left out because of what it is called. */
export class Odd {
  readonly notes: string[] = []

  /** Whether all of these can be written down. */
  allows(what: string, name: string, ...more: readonly string[]): boolean {
    if ([name, ...more].every(isPlain)) return true
    this.notes.push(`left out: ${what} ${shown(name)}: odd characters`)
    return false
  }
}

/** In the order of their names, each once: what comes later has the say. */
export function sorted(checks: readonly LearntCheck[]): LearntCheck[] {
  const byName = new Map(checks.map(check => [check.name, check]))
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}
