import { describe, expect, test } from 'vitest'
import { readOscap } from './oscap.ts'

const RULES = `
    <rule-result idref="xccdf_org.ssgproject.content_rule_no_empty_passwords" severity="high"><result>fail</result></rule-result>
    <rule-result idref="xccdf_org.ssgproject.content_rule_sshd_banner" severity="medium">
      <result>pass</result><check system="http://oval.mitre.org/XMLSchema/oval-definitions-5"/>
    </rule-result>
    <rule-result idref="partition_tmp"><result>notapplicable</result></rule-result>
    <rule-result idref="never_chosen"><result>notselected</result></rule-result>`

const results = (scores: string, rules = RULES): string => `<TestResult id="t">${rules}${scores}</TestResult>`

const SCORE = '<score system="urn:xccdf:scoring:default" maximum="100.000000">66.666664</score>'
const FLAT = '<score system="urn:xccdf:scoring:flat" maximum="40">10</score>'

/** As `oscap xccdf eval --results-arf` writes it: the benchmark among the requests, the results among the reports. */
const ARF = `<?xml version="1.0" encoding="UTF-8"?>
<arf:asset-report-collection xmlns:arf="http://scap.nist.gov/schema/asset-reporting-format/1.1">
  <arf:report-requests><arf:report-request><arf:content>
    <xccdf:Benchmark xmlns:xccdf="http://checklists.nist.gov/xccdf/1.2"><xccdf:title>All of it</xccdf:title>
      <xccdf:Group id="g"><xccdf:title>Accounts</xccdf:title>
        <xccdf:Rule id="xccdf_org.ssgproject.content_rule_no_empty_passwords"><xccdf:title>Prevent Login
          Without Password</xccdf:title></xccdf:Rule>
      </xccdf:Group>
    </xccdf:Benchmark>
  </arf:content></arf:report-request></arf:report-requests>
  <arf:reports><arf:report><arf:content>${results(FLAT + SCORE)}</arf:content></arf:report></arf:reports>
</arf:asset-report-collection>
`

describe('without a score to reach', () => {
  test('every rule that failed is a failure, by its name and title', () => {
    expect(readOscap(ARF)).toEqual([
      { attribute: 'score', status: 'passed', found: '66.67' },
      {
        attribute: 'no_empty_passwords',
        status: 'failed',
        expected: 'pass',
        found: 'fail',
        message: 'Prevent Login Without Password, severity high',
      },
      { attribute: 'sshd_banner', status: 'passed' },
      {
        attribute: 'partition_tmp',
        status: 'skipped',
        expected: 'pass',
        found: 'notapplicable',
        message: 'severity unknown',
      },
    ])
  })

  test.each([
    ['pass', 'passed'],
    ['fixed', 'passed'],
    ['fail', 'failed'],
    ['error', 'failed'],
    ['unknown', 'failed'],
    ['of a version to come', 'failed'],
    ['constructor', 'failed'],
    ['notchecked', 'skipped'],
    ['informational', 'skipped'],
  ])('%s is %s', (result, status) => {
    const [found] = readOscap(results('', `<rule-result idref="r"><result>${result}</result></rule-result>`))
    expect(found).toMatchObject({ attribute: 'r', status })
  })
})

describe('with a score to reach', () => {
  test('only the score decides', () => {
    const statuses = (least: number): Record<string, string> =>
      Object.fromEntries(readOscap(ARF, least).map(({ attribute, status }) => [attribute, status]))
    const rules = { no_empty_passwords: 'skipped', sshd_banner: 'passed', partition_tmp: 'skipped' }
    expect(statuses(66)).toEqual({ score: 'passed', ...rules })
    expect(statuses(70)).toEqual({ score: 'failed', ...rules })
    expect(readOscap(ARF, 70)[0]).toEqual({
      attribute: 'score',
      status: 'failed',
      expected: 'at least 70',
      found: '66.67',
    })
  })

  test('other scores count by their maximum', () => {
    expect(readOscap(results(FLAT), 25)[0]).toMatchObject({ status: 'passed', found: '25' })
  })

  test.each(['', '<score maximum="0">0</score>', '<score>much</score>'])('none is a failure: %j', score => {
    expect(readOscap(results(score), 1)[0]).toEqual({ attribute: 'score', status: 'failed', message: 'has no score' })
  })
})

test('of several runs the last one counts', () => {
  const first = results('', '<rule-result idref="r"><result>fail</result></rule-result>')
  const last = results('', '<rule-result idref="r"><result>pass</result></rule-result>')
  expect(readOscap(`<Benchmark>${first}${last}</Benchmark>`)).toEqual([{ attribute: 'r', status: 'passed' }])
})

test('a document without results is a failure', () => {
  expect(readOscap('<Benchmark/>')).toEqual([
    { attribute: 'output', status: 'failed', message: 'has no results of XCCDF rules' },
  ])
})
