import { learnAccounts } from './accounts.ts'
import type { Facts } from './facts.ts'
import { learnFiles } from './files.ts'
import { type LearntGroup, Odd, type Topic } from './learnt.ts'
import { learnPackages } from './packages.ts'
import { learnPorts } from './ports.ts'
import { learnServices } from './services.ts'
import { testFileOf, titleOf } from './yaml.ts'

export interface LearnOptions {
  /** What people call where the facts come from. */
  readonly from: string
  /** Only these; everything unless said. */
  readonly topics?: readonly Topic[]
  /** Packages with their versions. */
  readonly versions?: boolean
}

/** A first set of checks. */
export interface Learnt {
  /** For a plain tree. */
  readonly root?: string
  /** For a system that runs: only where the facts are of one. */
  readonly container?: string
  /** How many there are of each topic. */
  readonly counts: Readonly<Partial<Record<Topic, number>>>
  /** What was left out, and why. */
  readonly notes: readonly string[]
}

/** Chooses what a person would have written first: small, in a fixed order, true of the system the facts are of. */
export function learn(facts: Facts, { from, topics, versions = false }: LearnOptions): Learnt {
  const odd = new Odd()
  const services = learnServices(facts, odd)
  const isWanted = ({ topic, checks }: LearntGroup): boolean =>
    checks.length > 0 && (topics === undefined || topics.includes(topic))
  const root = [
    ...learnPackages(facts, versions, odd),
    services.root,
    ...learnAccounts(facts, odd),
    ...learnFiles(facts, odd),
  ].filter(isWanted)
  const running = [services.running, learnPorts(facts)].filter(isWanted)
  const title = titleOf(from, systemOf(facts))
  return {
    ...(root.length > 0 && { root: testFileOf(title, root) }),
    ...(running.length > 0 && { container: testFileOf(title, running, 'container') }),
    counts: countsOf([...root, ...running]),
    notes: [...lacking(facts), ...new Set(odd.notes)],
  }
}

const systemOf = (facts: Facts): string => facts.system[0]?.[0]?.replace(/^(["'])(.*)\1$/, '$2') ?? ''

function countsOf(groups: readonly LearntGroup[]): Learnt['counts'] {
  const counts: Partial<Record<Topic, number>> = {}
  for (const { topic, checks } of groups) {
    const lines = checks.flatMap(({ attributes: { contents } }) => (Array.isArray(contents) ? contents : [contents]))
    counts[topic] = (counts[topic] ?? 0) + lines.length
  }
  return counts
}

const FOR: Readonly<Record<string, string>> = {
  'dpkg-query': 'packages',
  rpm: 'packages',
  stat: 'rights of files',
  find: 'set-uid programs',
}

const lacking = (facts: Facts): string[] =>
  facts.lacks.flatMap(([program = '']) =>
    Object.hasOwn(FOR, program) ? [`nothing was learnt of ${FOR[program]}: there is no ${program} to ask`] : [],
  )
