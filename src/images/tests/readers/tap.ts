import { MOST_CASES, type TestCase, messageFrom, nameOf, tooMany } from './case.ts'

/**
 * The Test Anything Protocol, versions 12 to 14 (testanything.org):
 *
 *     1..3
 *     ok 1 - opens
 *     not ok 2 - reads           a failure; what follows in # lines or a YAML block says why
 *     ok 3 - writes # SKIP no disk
 *
 * Subtests are indented, and counted in the line of their parent. Lines that are none of this are no concern of ours.
 */
export function readTap(text: string): TestCase[] {
  const run = new TapRun()
  for (const line of text.split(/\r?\n/)) {
    if (run.isOver) break
    run.hear(line)
  }
  return run.cases()
}

interface Plan {
  readonly count: number
  readonly reason: string
}

const PLAN = /^1\.\.(\d{1,9})\s*(?:#\s*(.*))?$/
const POINT = /^(not )?ok\b(?: +(\d{1,9})(?=\s|$))?\s*(?:- ?)?(.*)$/
const BAIL_OUT = /^\s*Bail out!\s*(.*)$/
/** A # that stands alone and is not written \#. */
const DIRECTIVE = /^(.*?)(?:^|(?<=\s))#\s*(skip|todo)\S*\s*(.*)$/i

class TapRun {
  readonly #cases: TestCase[] = []
  readonly #numbers = new Set<number>()
  readonly #wrong: string[] = []
  #plan: Plan | undefined
  #bailedOut: string | undefined
  #isInYaml = false
  /** Of the last point, where it failed. */
  #why: string[] = []
  #hasFailed = false

  get isOver(): boolean {
    return this.#bailedOut !== undefined || this.#cases.length > MOST_CASES
  }

  hear(line: string): void {
    const bailOut = BAIL_OUT.exec(line)
    if (bailOut !== null) this.#bailedOut = bailOut[1] || 'without a reason'
    else if (this.#isInYaml) this.#hearYaml(line)
    else if (/^ {2}---\s*$/.test(line)) this.#isInYaml = true
    else if (line.startsWith('#')) this.#explain(line.replace(/^#\s?/, ''))
    else this.#hearPoint(line)
  }

  #hearYaml(line: string): void {
    if (/^ {2}\.\.\.\s*$/.test(line)) this.#isInYaml = false
    else this.#explain(line.slice(2))
  }

  #explain(line: string): void {
    if (this.#hasFailed && this.#why.length < 100) this.#why.push(line)
  }

  #hearPoint(line: string): void {
    const plan = PLAN.exec(line)
    if (plan !== null) {
      if (this.#plan !== undefined) this.#wrong.push('has more than one plan')
      this.#plan = { count: Number(plan[1]), reason: (plan[2] ?? '').replace(/^skip\S*\s*/i, '') }
      return
    }
    const point = POINT.exec(line)
    if (point === null) return
    this.#endPoint()
    const [, not, number, rest = ''] = point
    const at = number === undefined ? this.#cases.length + 1 : Number(number)
    if (this.#numbers.has(at)) this.#wrong.push(`has two results for ${at}`)
    this.#numbers.add(at)
    const [, before = rest, directive = '', reason = ''] = DIRECTIVE.exec(rest) ?? []
    const attribute = nameOf(`${at} ${before.replaceAll(/\\([\\#])/g, '$1')}`)
    this.#cases.push(caseOf(attribute, not === undefined, directive.toLowerCase(), messageFrom(reason)))
    this.#hasFailed = this.#cases.at(-1)?.status === 'failed'
  }

  /** What was said behind it belongs to it. */
  #endPoint(): void {
    const last = this.#cases.pop()
    if (last === undefined) return
    const message = messageFrom(this.#why.join('\n'))
    this.#cases.push(message === '' ? last : { ...last, message })
    this.#why = []
    this.#hasFailed = false
  }

  cases(): TestCase[] {
    this.#endPoint()
    if (this.#cases.length > MOST_CASES) return [...this.#cases.slice(0, MOST_CASES), tooMany]
    if (this.#bailedOut !== undefined)
      return [...this.#cases, { attribute: 'bail out', status: 'failed', message: messageFrom(this.#bailedOut) }]
    const plan = this.#plan
    const ran = this.#cases.length
    if (plan?.count === 0 && ran === 0)
      return [{ attribute: 'plan', status: 'skipped', message: messageFrom(plan.reason || 'nothing to test') }]
    if (plan === undefined) this.#wrong.push('has no plan (1..N): it may have ended early')
    else if (plan.count !== ran) this.#wrong.push(`planned ${plan.count} and ran ${ran}`)
    else if ([...this.#numbers].some(number => number < 1 || number > ran))
      this.#wrong.push('numbers what it did not plan')
    return [
      ...this.#cases,
      ...this.#wrong.slice(0, 10).map(message => ({ attribute: 'plan', status: 'failed' as const, message })),
    ]
  }
}

function caseOf(attribute: string, isOk: boolean, directive: string, reason: string): TestCase {
  const said = reason === '' ? {} : { message: reason }
  if (directive === 'todo' && !isOk)
    return { attribute, status: 'skipped', message: reason === '' ? 'to do' : `to do: ${reason}` }
  if (!isOk) return { attribute, status: 'failed', expected: 'ok', found: 'not ok', ...said }
  return directive === 'skip' ? { attribute, status: 'skipped', ...said } : { attribute, status: 'passed' }
}
