import { MOST_CASES, type TestCase, nameOf, tooMany } from './case.ts'
import { readXml } from './xml.ts'

/** What XCCDF 1.2 knows (NIST IR 7275, table 26), and what it means for us. Rules that are not selected are left out. */
const MEANING = new Map<string, TestCase['status'] | 'left out'>([
  ['pass', 'passed'],
  ['fixed', 'passed'],
  ['fail', 'failed'],
  ['error', 'failed'],
  ['unknown', 'failed'],
  ['notapplicable', 'skipped'],
  ['notchecked', 'skipped'],
  ['informational', 'skipped'],
  ['notselected', 'left out'],
])

const DEFAULT_SCORING = 'urn:xccdf:scoring:default'

interface RuleResult {
  readonly rule: string
  readonly severity: string
  readonly result: string
}

interface Score {
  readonly system: string
  readonly maximum: number
  readonly value: number
}

interface Found {
  readonly titles: ReadonlyMap<string, string>
  readonly rules: readonly RuleResult[]
  readonly scores: readonly Score[]
}

/**
 * What `oscap xccdf eval --results` or `--results-arf` has written. With a score to reach only the score counts: the rules
 * that failed are named, and skipped.
 */
export function readOscap(text: string, minScore?: number): TestCase[] {
  const { titles, rules, scores } = collect(text)
  if (rules.length === 0) return [{ attribute: 'output', status: 'failed', message: 'has no results of XCCDF rules' }]
  const cases = rules.flatMap(rule => caseOf(rule, titles.get(rule.rule), minScore !== undefined))
  const all = [...scoreCases(scores, minScore), ...cases]
  return all.length > MOST_CASES ? [...all.slice(0, MOST_CASES), tooMany] : all
}

/** Rules have their titles in the benchmark; results only name them. Of several runs the last one counts. */
function collect(text: string): Found {
  const titles = new Map<string, string>()
  let rules: RuleResult[] = []
  let scores: Score[] = []
  const path: { readonly name: string; readonly attributes: Readonly<Record<string, string>>; text: string }[] = []
  for (const event of readXml(text)) {
    const top = path.at(-1)
    if (event.kind === 'text') {
      if (top !== undefined && WANTED.has(top.name)) top.text += event.text
    } else if (event.kind === 'open') {
      if (event.name === 'TestResult') [rules, scores] = [[], []]
      path.push({ name: event.name, attributes: event.attributes, text: '' })
    } else if (top !== undefined) {
      path.pop()
      const parent = path.at(-1)
      const value = top.text.trim()
      if (top.name === 'title' && parent?.name === 'Rule') titles.set(parent.attributes['id'] ?? '', value)
      if (top.name === 'result' && parent?.name === 'rule-result')
        rules.push({
          rule: parent.attributes['idref'] ?? '',
          severity: parent.attributes['severity'] ?? 'unknown',
          result: value,
        })
      if (top.name === 'score' && parent?.name === 'TestResult')
        scores.push({
          system: top.attributes['system'] ?? '',
          maximum: Number(top.attributes['maximum'] ?? 100),
          value: Number(value),
        })
    }
  }
  return { titles, rules, scores }
}

const WANTED = new Set(['title', 'result', 'score'])

function scoreCases(scores: readonly Score[], minScore: number | undefined): TestCase[] {
  const score = scores.find(({ system }) => system === DEFAULT_SCORING) ?? scores[0]
  const percent = score === undefined ? Number.NaN : Math.round((score.value / score.maximum) * 10_000) / 100
  if (!Number.isFinite(percent))
    return minScore === undefined ? [] : [{ attribute: 'score', status: 'failed', message: 'has no score' }]
  if (minScore === undefined) return [{ attribute: 'score', status: 'passed', found: String(percent) }]
  return [
    {
      attribute: 'score',
      status: percent >= minScore ? 'passed' : 'failed',
      expected: `at least ${minScore}`,
      found: String(percent),
    },
  ]
}

function caseOf({ rule, severity, result }: RuleResult, title: string | undefined, isScored: boolean): TestCase[] {
  const meaning = MEANING.get(result) ?? 'failed'
  if (meaning === 'left out') return []
  const attribute = nameOf(rule.replace(/^xccdf_[^_]+_rule_/, ''))
  if (meaning === 'passed') return [{ attribute, status: 'passed' }]
  const about = nameOf(title ?? '')
  const message = [about, `severity ${severity}`, ...(isScored && meaning === 'failed' ? ['the score decides'] : [])]
  return [
    {
      attribute,
      status: isScored ? 'skipped' : meaning,
      expected: 'pass',
      found: nameOf(result),
      message: message.filter(word => word !== '').join(', '),
    },
  ]
}
