import type { Facts } from './facts.ts'
import { type LearntGroup, type Odd, sorted } from './learnt.ts'

/** Part of every system that systemd starts, whoever set it up. */
const ALWAYS = /^(systemd-(?!networkd|resolved|timesyncd)|console-getty|e2scrub_reap)/

/** ssh.service → ssh; ssh.socket stays what it is. Templates start nothing themselves. */
const nameOf = (unit: string): string => unit.replace(/\.service$/, '')
const isTemplate = (unit: string): boolean => /@(\.|$)/.test(unit)

/** Those that start by themselves; and, of a machine, those of them that run. */
export function learnServices(facts: Facts, odd: Odd): { readonly root: LearntGroup; readonly running: LearntGroup } {
  const names = [...new Set(facts.enabled.map(([unit = '']) => unit))]
    .filter(unit => !isTemplate(unit))
    .map(nameOf)
    .filter(name => !ALWAYS.test(name) && odd.allows('service', name))
  const active = new Set(facts.active.map(([unit = '']) => nameOf(unit)))
  const common = { topic: 'service', kind: 'service' } as const
  return {
    root: { ...common, comment: 'Services and sockets that start by themselves.', checks: checked('enabled', names) },
    running: {
      ...common,
      comment: 'Of the services that start by themselves those that were running, and may run in a container.',
      checks: checked(
        'running',
        names.filter(name => active.has(name)),
      ),
    },
  }
}

const checked = (attribute: string, names: readonly string[]): LearntGroup['checks'] =>
  sorted(names.map(name => ({ name, attributes: { [attribute]: true } })))
