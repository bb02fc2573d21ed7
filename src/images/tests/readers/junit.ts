import { MOST_CASES, type TestCase, messageFrom, nameOf, tooMany } from './case.ts'
import { readXml } from './xml.ts'

const VERDICTS = new Set(['failure', 'error', 'skipped'])

interface OpenCase {
  readonly attributes: Readonly<Record<string, string>>
  verdict?: string
  message: string
  text: string
}

/** JUnit's XML, as test runners of every language write it: testsuites/testsuite/testcase/(failure|error|skipped). */
export function readJUnit(text: string): TestCase[] {
  const cases: TestCase[] = []
  let depth = 0
  let current: OpenCase | undefined
  /** In the first verdict of a case: some runners add their output to others. */
  let isInVerdict = false
  for (const event of readXml(text)) {
    if (event.kind === 'text') {
      if (isInVerdict && current !== undefined) current.text += event.text
    } else if (event.kind === 'open') {
      if (depth++ === 0 && !['testsuites', 'testsuite'].includes(event.name))
        return [{ attribute: 'output', status: 'failed', message: `is not JUnit's XML: its root is <${event.name}>` }]
      if (event.name === 'testcase') current = { attributes: event.attributes, message: '', text: '' }
      else if (VERDICTS.has(event.name) && current !== undefined && current.verdict === undefined) {
        current.verdict = event.name
        current.message = event.attributes['message'] ?? event.attributes['type'] ?? ''
        isInVerdict = true
      }
    } else {
      depth--
      if (VERDICTS.has(event.name)) isInVerdict = false
      if (event.name !== 'testcase' || current === undefined) continue
      if (cases.length === MOST_CASES) return [...cases, tooMany]
      cases.push(caseOf(current))
      current = undefined
    }
  }
  // Whoever tried nothing has found nothing out.
  return cases.length > 0 ? cases : [{ attribute: 'output', status: 'failed', message: 'has no test case' }]
}

function caseOf({ attributes, verdict, message, text }: OpenCase): TestCase {
  const { classname = '', name = '', time = '' } = attributes
  const attribute = nameOf([classname, name].filter(word => word !== '').join(' ')) || 'unnamed'
  // Some write thousands as 1,234.5.
  const seconds = Number(time.replaceAll(',', ''))
  const took = time !== '' && Number.isFinite(seconds) && seconds >= 0 ? { seconds } : {}
  if (verdict === undefined) return { attribute, status: 'passed', ...took }
  const words = messageFrom(text.includes(message) ? text : `${message}\n${text}`)
  return {
    attribute,
    status: verdict === 'skipped' ? 'skipped' : 'failed',
    ...(words !== '' && { message: words }),
    ...took,
  }
}
