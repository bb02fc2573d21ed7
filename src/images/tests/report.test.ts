import { join } from 'node:path'
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { exec } from '../../lib/exec.ts'
import { temporaryDir } from '../../site/testing.ts'
import { TestReport, type TestResult, passedPlaces, reportLines, toJUnit } from './report.ts'

const result = (over: Partial<TestResult> = {}): TestResult => ({
  id: 'ssh.yaml: service ssh',
  place: 'container',
  kind: 'service',
  name: 'ssh',
  attribute: 'running',
  status: 'passed',
  seconds: 0.25,
  ...over,
})

const failed = result({ status: 'failed', expected: 'true', found: 'false', message: 'people can log in' })
const skipped = result({
  id: 'a.yaml: file /x',
  place: 'root',
  attribute: 'mode',
  status: 'skipped',
  message: 'exists is false',
  seconds: 0,
})

const reportOf = (over: Partial<TestReport> = {}): TestReport => ({
  schema: 'muster.tests/1',
  image: { name: 'compute', digest: `sha256:${'1'.repeat(64)}` },
  tests: `sha256:${'2'.repeat(64)}`,
  began: '2026-11-16T07:00:00.000Z',
  seconds: 3.5,
  places: ['root', 'container'],
  results: [result({ place: 'root' }), skipped, result(), failed],
  ...over,
})

describe('a report', () => {
  test('is a document of its own', () => {
    const report = reportOf({ source: { commit: 'abc', dirty: false }, score: { 'scan.yaml: exec scan': 91.5 } })
    expect(TestReport.parse(JSON.parse(JSON.stringify(report)))).toEqual(report)
    expect(TestReport.safeParse({ ...report, more: 1 }).success).toBe(false)
    expect(TestReport.safeParse({ ...report, places: ['cloud'] }).success).toBe(false)
    expect(TestReport.safeParse({ ...report, tests: 'abc' }).success).toBe(false)
  })

  test('says where everything passed: run completely, and nothing failed', () => {
    expect(passedPlaces(reportOf())).toEqual(new Set(['root']))
    expect(passedPlaces(reportOf({ places: ['container'] }))).toEqual(new Set())
    expect(passedPlaces(reportOf({ results: [] }))).toEqual(new Set(['root', 'container']))
    expect(passedPlaces(reportOf({ places: ['root', 'vm'] }))).toEqual(new Set(['root', 'vm']))
  })

  test('is read on a terminal', () => {
    expect(reportLines(reportOf())).toEqual([
      'failed: ssh.yaml: service ssh: running (container)',
      '  expected  true',
      '  found     false',
      '  why       people can log in',
      'root       1 passed, 1 skipped (0.3 s)',
      'container  1 passed, 1 failed (0.5 s)',
    ])
    expect(reportLines(reportOf({ places: [], results: [result()] }))).toEqual([
      'container  1 passed (0.3 s), not all of them run',
    ])
  })

  test('moves no cursor', () => {
    const found = 'a\u001B[2Jb\n  c\u0007'
    expect(reportLines(reportOf({ results: [result({ status: 'failed', found })] }))).toContain('  found     a[2Jb c')
  })
})

describe('as JUnit', () => {
  test('each place is a suite', () => {
    expect(toJUnit(reportOf())).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="compute" tests="4" failures="1" skipped="1" time="3.500">
  <testsuite name="root" tests="2" failures="0" skipped="1" timestamp="2026-11-16T07:00:00.000Z" time="0.250">
    <testcase classname="compute.root" name="ssh.yaml: service ssh: running" time="0.250"/>
    <testcase classname="compute.root" name="a.yaml: file /x: mode" time="0.000">
      <skipped message="exists is false"/>
    </testcase>
  </testsuite>
  <testsuite name="container" tests="2" failures="1" skipped="0" timestamp="2026-11-16T07:00:00.000Z" time="0.500">
    <testcase classname="compute.container" name="ssh.yaml: service ssh: running" time="0.250"/>
    <testcase classname="compute.container" name="ssh.yaml: service ssh: running" time="0.250">
      <failure message="people can log in">expected true
found false</failure>
    </testcase>
  </testsuite>
</testsuites>
`)
  })

  test('is well-formed whatever was found', async () => {
    const found = `<a href="x">&amp; ']]>\u0000\u001B\uFFFF\uD800 é 😀\n2`
    const text = toJUnit(reportOf({ results: [result({ status: 'failed', id: found, found, message: found })] }))
    expect(text).toContain('found &lt;a href=&quot;x&quot;&gt;&amp;amp; &apos;]]&gt;\uFFFD é 😀\n2</failure>')
    expect(text).toContain('message="&lt;a href=&quot;x&quot;&gt;&amp;amp; &apos;]]&gt;\uFFFD é 😀&#10;2"')
    const file = join(await temporaryDir(), 'junit.xml')
    await writeFile(file, text)
    const script = 'import sys, xml.dom.minidom as m; print(len(m.parse(sys.argv[1]).getElementsByTagName("testcase")))'
    expect((await exec('python3', ['-c', script, file])).stdout.toString('utf8')).toBe('1\n')
  })
})
